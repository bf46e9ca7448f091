"""For each reason a real login that is refused for it: of the table of refusals, or below."""

import time
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

from django.http import HttpResponse
from django.test import override_settings

from taxpayers.rules import RegistryReason
from tests.dpop.dpop_erp import new_dpop_erp
from tests.endpoint.test_event_loop import through_django
from tests.endpoint.test_refusals import ROWS, Row, as_response
from tests.narrow_credentials.test_logins import allow_networks, login_from
from tests.support.erp import new_erp
from tests.support.outages import database_out_of_reach
from tokens.refusals.table import ProtocolReason


def of_table(row: Row) -> HttpResponse:
    return as_response(through_django(next(iter(row.provoked.values()))()))


def insecure() -> HttpResponse:
    with override_settings(AUTH_URL="https://id.example.org"):
        return new_erp().login()


def another_network() -> HttpResponse:
    erp = new_erp()
    allow_networks(erp, "198.51.100.0/24")
    return login_from(erp, "203.0.113.7")


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
    **{row.reason: partial(of_table, row) for row in ROWS},
    ProtocolReason.INSECURE_TRANSPORT: insecure,
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: another_network,
    ProtocolReason.INVALID_DPOP_PROOF: old_proof,
    ProtocolReason.USE_DPOP_NONCE: lambda: new_dpop_erp(nonce=False).post(),
    ProtocolReason.TEMPORARILY_UNAVAILABLE: out_of_reach,
    ProtocolReason.SERVER_ERROR: fault_of_ours,
}
