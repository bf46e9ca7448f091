"""For each reason a real login that is refused for it, and its whole answer."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from django.http import HttpResponse
from django.test import Client, override_settings

from taxpayers.credentials import new_client_secret
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.rules import RegistryReason
from tests.dpop.dpop_erp import new_dpop_erp
from tests.narrow_credentials.test_logins import allow_networks, granted, limit, login_from
from tests.support.erp import PATH, Erp, new_erp, post
from tests.support.factories import (
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)
from tests.support.outages import database_out_of_reach
from tokens.refusals.table import ProtocolReason

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def intermediary(**role: object) -> Erp:
    return new_erp(taxpayer=IntermediaryFactory.create(**role).taxpayer)


def secret(**fields: object) -> HttpResponse:
    erp = new_erp()
    erp.system_user.credentials.update(**fields)
    return erp.login()


def permission(**dates: datetime) -> HttpResponse:
    erp = intermediary()
    of = GrantedPermissionFactory.create(intermediary=erp.role, **dates)
    return erp.login(on_behalf_of=str(of.taxpayer.identifier))


def no_permission() -> HttpResponse:
    return intermediary().login(on_behalf_of=str(TaxpayerFactory.create().identifier))


def inactive_intermediary() -> HttpResponse:
    erp = intermediary()
    of = GrantedPermissionFactory.create(intermediary=erp.role)
    type(erp.role).objects.update(active_until=NOW - DAY)
    return erp.login(on_behalf_of=str(of.taxpayer.identifier))


def insecure() -> HttpResponse:
    erp = new_erp()
    with override_settings(AUTH_URL="https://id.example.org"):
        return erp.login()


def limited_to(*codes: str, own: bool = False, taxpayers: bool = False) -> HttpResponse:
    erp = intermediary()
    subject = granted(erp, "documents:view")
    other = (TaxpayerFactory.create().identifier,) if taxpayers else ()
    limit(erp, *codes, taxpayers=other)
    return erp.login() if own else erp.login(on_behalf_of=str(subject))


def another_network() -> HttpResponse:
    erp = new_erp()
    allow_networks(erp, "198.51.100.0/24")
    return login_from(erp, "203.0.113.7")


def over_the_limit() -> HttpResponse:
    erp = new_erp()
    answers = [erp.login() for _ in range(13)]
    return answers[-1]


def no_proof() -> HttpResponse:
    return new_dpop_erp(nonce=False).erp.login()


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


BLOCKED = {"blocked_at": NOW - DAY, "blocked_by": "officer", "blocked_reason": "abuse"}

LOGINS: dict[str, Callable[[], HttpResponse]] = {
    ProtocolReason.METHOD_NOT_ALLOWED: lambda: Client().get(PATH),  # type: ignore[dict-item, return-value]
    ProtocolReason.INSECURE_TRANSPORT: insecure,
    ProtocolReason.MALFORMED_REQUEST: lambda: post("scope=a&scope=b"),
    ProtocolReason.MISSING_PARAMETER: lambda: new_erp().login(client_secret=None),
    ProtocolReason.UNSUPPORTED_GRANT_TYPE: lambda: new_erp().login(grant_type="password"),
    ProtocolReason.MALFORMED_ON_BEHALF_OF: lambda: new_erp().login(
        headers={"On-Behalf-Of": "C1234567890"}
    ),
    ProtocolReason.MALFORMED_CREDENTIALS: lambda: new_erp().login(client_secret="cs_test_abc"),
    ProtocolReason.INVALID_CREDENTIALS: lambda: new_erp().login(
        client_secret=new_client_secret("test")
    ),
    RegistryReason.SECRET_EXPIRED: lambda: secret(created_at=NOW - 9 * DAY, expires_at=NOW - DAY),
    RegistryReason.SECRET_REVOKED: lambda: secret(revoked_at=NOW - DAY, slot=None),
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: another_network,
    ProtocolReason.RATE_LIMITED: over_the_limit,
    RegistryReason.DPOP_PROOF_MISSING: no_proof,
    ProtocolReason.INVALID_DPOP_PROOF: old_proof,
    ProtocolReason.USE_DPOP_NONCE: lambda: new_dpop_erp(nonce=False).post(),
    RegistryReason.CERTIFICATE_MISSING: lambda: new_erp(token_binding=TokenBinding.TLS).login(),
    RegistryReason.SYSTEM_USER_BLOCKED: lambda: new_erp(**BLOCKED).login(),
    RegistryReason.SYSTEM_USER_EXPIRED: lambda: new_erp(expires_at=NOW - DAY).login(),
    RegistryReason.TAXPAYER_INACTIVE: lambda: new_erp(taxpayer__is_active=False).login(),
    RegistryReason.NOT_AN_INTERMEDIARY: lambda: new_erp().login(on_behalf_of="C1234567890"),
    RegistryReason.INTERMEDIARY_INACTIVE: inactive_intermediary,
    RegistryReason.OWN_TAXPAYER_NOT_ALLOWED: lambda: limited_to("documents:view", own=True),
    RegistryReason.TAXPAYER_NOT_ALLOWED: lambda: limited_to(taxpayers=True),
    RegistryReason.NO_PERMISSION: no_permission,
    RegistryReason.PERMISSION_NOT_YET_VALID: lambda: permission(valid_from=NOW + DAY),
    RegistryReason.PERMISSION_EXPIRED: lambda: permission(
        valid_from=NOW - 2 * DAY, valid_until=NOW - DAY
    ),
    RegistryReason.PERMISSION_REVOKED: lambda: permission(
        valid_from=NOW - 2 * DAY, revoked_at=NOW - DAY
    ),
    RegistryReason.PERMISSIONS_NOT_ALLOWED: lambda: limited_to("documents:submit"),
    RegistryReason.INVALID_SCOPE: lambda: new_erp().login(scope="Unknown"),
    ProtocolReason.TEMPORARILY_UNAVAILABLE: out_of_reach,
    ProtocolReason.SERVER_ERROR: fault_of_ours,
}
