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


def test_a_taxpayer_login_has_these_claims_and_no_other() -> None:
    found = claims(TAXPAYER_LOGIN)
    assert found == TAXPAYER_CLAIMS
    assert {type(found["iat"]), type(found["exp"])} == {int}


@pytest.mark.parametrize(
    ("confirmation", "claim"),
    [
        (Confirmation(TokenBinding.DPOP, "a-thumbprint"), {"jkt": "a-thumbprint"}),
        (Confirmation(TokenBinding.TLS, "a-thumbprint"), {"x5t#S256": "a-thumbprint"}),
    ],
)
def test_a_bound_token_names_what_it_is_bound_to(
    confirmation: Confirmation, claim: dict[str, str]
) -> None:
    bound = claims(replace(TAXPAYER_LOGIN, confirmation=confirmation))
    assert bound == {**TAXPAYER_CLAIMS, "cnf": claim}
    assert read_confirmation(bound["cnf"]) == confirmation


def test_a_rob_number_is_in_the_subject_and_in_the_taxpayer() -> None:
    login = replace(TAXPAYER_LOGIN, subject=TaxpayerId("C2584563222", "202001234567"))
    assert claims(login) == {
        **TAXPAYER_CLAIMS,
        "sub": "C2584563222:202001234567",
        "taxpayer": {"tin": "C2584563222", "rob": "202001234567"},
    }


@pytest.mark.parametrize(
    ("actor", "notation"),
    [(TaxpayerId("D1111111111"), "D1111111111"), (TaxpayerId("D1111111111", "R-1"), None)],
)
def test_an_intermediary_login_names_the_actor_and_its_permissions(
    actor: TaxpayerId, notation: str | None
) -> None:
    login = replace(TAXPAYER_LOGIN, actor=actor, permissions=("documents:submit", "x:y"))
    assert claims(login) == {
        **TAXPAYER_CLAIMS,
        "act": {"sub": notation or "D1111111111:R-1"},
        "permissions": ["documents:submit", "x:y"],
    }


@pytest.mark.parametrize(
    ("scopes", "scope", "audience"),
    [
        (("InvoicingAPI", "Reports"), "InvoicingAPI Reports", ["InvoicingAPI", "Reporting"]),
        (("Reports", "InvoicingAPI"), "Reports InvoicingAPI", ["Reporting", "InvoicingAPI"]),
        (("Reports", "Archive"), "Reports Archive", "Reporting"),
    ],
)
def test_the_audience_is_that_of_the_granted_scopes(
    scopes: tuple[str, ...], scope: str, audience: str | list[str]
) -> None:
    login = replace(TAXPAYER_LOGIN, scopes=scopes)
    assert claims(login) == {**TAXPAYER_CLAIMS, "scope": scope, "aud": audience}


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
