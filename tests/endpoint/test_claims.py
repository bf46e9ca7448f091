"""Every claim of an access token (contract 2, RFC 9068 section 2.2)."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.access_tokens.claims import access_token_claims, read_confirmation
from tokens.lifetime import TOKEN_LIFETIME, renew_at

AT = datetime(2026, 11, 21, 10, 0, 0, 999_999, UTC)
ISSUED_AT = 1795255200
AUDIENCES = {"InvoicingAPI": "InvoicingAPI", "Reports": "Reporting", "Archive": "Reporting"}
TAXPAYER_LOGIN = Authorization(
    client_id="ci_live_1",
    subject=TaxpayerId("C2584563222"),
    actor=None,
    scopes=("InvoicingAPI",),
    asked_scopes=None,
    permissions=(),
    at=AT,
)
TAXPAYER_CLAIMS = {
    "iss": "https://identity.example.org",
    "sub": "C2584563222",
    "aud": "InvoicingAPI",
    "client_id": "ci_live_1",
    "jti": "a-jti",
    "iat": ISSUED_AT,
    "exp": ISSUED_AT + 3600,
    "scope": "InvoicingAPI",
    "taxpayer": {"tin": "C2584563222"},
    "status": {"status_list": {"idx": 7, "uri": "https://identity.example.org/status/1"}},
}


def claims(authorization: Authorization) -> dict[str, Any]:
    return access_token_claims(
        authorization,
        issuer="https://identity.example.org",
        jti="a-jti",
        status_index=2**20 + 7,
        audiences=AUDIENCES,
    )


BOUND = {
    TokenBinding.DPOP: {"jkt": "a-thumbprint"},
    TokenBinding.TLS: {"x5t#S256": "a-thumbprint"},
}
ROB, ACTOR = TaxpayerId("C2584563222", "202001234567"), TaxpayerId("D1111111111", "R-1")
IN, REPORTS = "InvoicingAPI", "Reports"
# What differs in a login, and in its claims.
DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"subject": ROB}, {"sub": str(ROB), "taxpayer": {"tin": ROB.tin, "rob": ROB.rob}}),
    ({"actor": ACTOR, "permissions": ("documents:submit", "x:y")},
     {"act": {"sub": "D1111111111:R-1"}, "permissions": ["documents:submit", "x:y"]}),
    ({"actor": TaxpayerId("D1"), "permissions": ("x:y",)},
     {"act": {"sub": "D1"}, "permissions": ["x:y"]}),
    ({"scopes": (IN, REPORTS)}, {"scope": f"{IN} {REPORTS}", "aud": [IN, "Reporting"]}),
    ({"scopes": (REPORTS, IN)}, {"scope": f"{REPORTS} {IN}", "aud": ["Reporting", IN]}),
    ({"scopes": (REPORTS, "Archive")}, {"scope": "Reports Archive", "aud": "Reporting"}),
    *(({"confirmation": Confirmation(to, "a-thumbprint")}, {"cnf": cnf})
      for to, cnf in BOUND.items()),
]  # fmt: skip


@pytest.mark.parametrize(("login", "differs"), DIFFERENCES)
def test_a_login_has_these_claims_and_no_other(
    login: dict[str, Any], differs: dict[str, Any]
) -> None:
    found = claims(replace(TAXPAYER_LOGIN, **login))
    assert found == TAXPAYER_CLAIMS | differs
    assert {type(found["iat"]), type(found["exp"])} == {int}


@pytest.mark.parametrize(("to", "claim"), BOUND.items())
def test_what_a_token_is_bound_to_is_read_back(to: TokenBinding, claim: dict[str, str]) -> None:
    assert read_confirmation(claim) == Confirmation(to, "a-thumbprint")


def test_a_scope_without_an_audience_gives_no_token() -> None:
    with pytest.raises(KeyError):
        claims(replace(TAXPAYER_LOGIN, scopes=("Unknown",)))


def test_clients_renew_apart_between_half_and_nine_tenths_of_the_life() -> None:
    moments = [renew_at(f"ci_{number}", AT, TOKEN_LIFETIME) - AT for number in range(10_000)]
    assert timedelta(minutes=30) <= min(moments) < timedelta(minutes=30, seconds=5)
    assert timedelta(minutes=53, seconds=55) < max(moments) <= timedelta(minutes=54)
    in_each_minute = Counter(moment // timedelta(minutes=1) for moment in moments)
    assert max(in_each_minute.values()) < 1.5 * len(moments) / 24
    assert renew_at("ci_1", AT, TOKEN_LIFETIME) - AT == moments[1], "the same for one client"
