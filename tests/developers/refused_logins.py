"""For each reason a real login that is refused for it: mostly that of a client of the sandbox."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

from django.http import HttpResponse
from django.test import Client, override_settings

from identity.sandbox.catalogue import CLIENTS, TOKEN, SandboxClient
from identity.sandbox.registry import make_sandbox
from taxpayers.credentials import new_client_secret
from taxpayers.models import SystemUser
from taxpayers.rules import RegistryReason
from tests.dpop.dpop_erp import new_dpop_erp
from tests.narrow_credentials.test_logins import allow_networks, login_from
from tests.support.erp import PATH, Erp, new_erp, post
from tests.support.outages import database_out_of_reach
from tokens.refusals.table import ProtocolReason

NOW, DAY = datetime.now(UTC), timedelta(days=1)


def of_sandbox(client: SandboxClient) -> HttpResponse:
    make_sandbox(datetime.now(UTC))
    SystemUser.objects.update(logins_per_minute=12)  # as usual; those of the sandbox have no limit
    erp = Erp(client.credentials.client_id, client.credentials.client_secret)
    return erp.login(on_behalf_of=client.on_behalf_of or None)


def insecure() -> HttpResponse:
    with override_settings(AUTH_URL="https://id.example.org"):
        return new_erp().login()


def ended_secret(**fields: Any) -> HttpResponse:
    """Of the sandbox such a login does not count as a failure."""
    erp = new_erp()
    erp.system_user.credentials.update(**fields)
    return erp.login()


def another_network() -> HttpResponse:
    erp = new_erp()
    allow_networks(erp, "198.51.100.0/24")
    return login_from(erp, "203.0.113.7")


def over_the_limit() -> HttpResponse:
    erp = new_erp()
    return [erp.login() for _ in range(13)][-1]


def old_proof() -> HttpResponse:
    erp = new_dpop_erp()
    return erp.post(erp.proof(iat=int(time.time()) - 3600))


def out_of_reach() -> HttpResponse:
    erp = new_erp()
    with database_out_of_reach():
        return erp.login()


def fault_of_ours() -> HttpResponse:
    erp = new_erp()
    with patch("tokens.operations.toolkit.decide", side_effect=ZeroDivisionError("of a test")):
        return erp.login()


LOGINS: dict[str, Callable[[], HttpResponse]] = {
    **{client.gets: partial(of_sandbox, client) for client in CLIENTS if client.gets != TOKEN},
    ProtocolReason.METHOD_NOT_ALLOWED: lambda: Client().get(PATH),  # type: ignore[dict-item, return-value]
    ProtocolReason.INSECURE_TRANSPORT: insecure,
    ProtocolReason.MALFORMED_REQUEST: lambda: post("scope=a&scope=b"),
    ProtocolReason.MISSING_PARAMETER: lambda: new_erp().login(client_secret=None),
    ProtocolReason.UNSUPPORTED_GRANT_TYPE: lambda: new_erp().login(grant_type="password"),
    ProtocolReason.MALFORMED_ON_BEHALF_OF: lambda: new_erp().login(headers={"On-Behalf-Of": "C1"}),
    ProtocolReason.MALFORMED_CREDENTIALS: lambda: new_erp().login(client_secret="cs_test_abc"),
    ProtocolReason.INVALID_CREDENTIALS: lambda: new_erp().login(
        client_secret=new_client_secret("test")
    ),
    RegistryReason.SECRET_EXPIRED: lambda: ended_secret(
        created_at=NOW - 9 * DAY, expires_at=NOW - DAY
    ),
    RegistryReason.SECRET_REVOKED: lambda: ended_secret(revoked_at=NOW - DAY, slot=None),
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: another_network,
    ProtocolReason.RATE_LIMITED: over_the_limit,
    ProtocolReason.INVALID_DPOP_PROOF: old_proof,
    ProtocolReason.USE_DPOP_NONCE: lambda: new_dpop_erp(nonce=False).post(),
    RegistryReason.INVALID_SCOPE: lambda: new_erp().login(scope="Unknown"),
    ProtocolReason.TEMPORARILY_UNAVAILABLE: out_of_reach,
    ProtocolReason.SERVER_ERROR: fault_of_ours,
}
