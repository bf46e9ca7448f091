"""Which access tokens are accepted, and until when: pure, the moment is an argument (RFC 9068)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from msgspec.structs import replace

from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.access_tokens.claims import access_token_claims
from tokens.access_tokens.verification import AccessToken, InvalidToken, verify
from tokens.keys.ring import Key, KeyRing, generate, public_jwk
from tokens.keys.signer import sign

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
MOMENT, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
HOUR = timedelta(hours=1)
ISSUER = "https://identity.example.org"
NOT_OURS = "not issued by this service"


def new_key(signs_from: datetime) -> Key:
    private_key = generate("ES256")
    jwk = public_jwk(private_key, "ES256")
    return Key(jwk["kid"], "ES256", signs_from, jwk, private_key)


OLD, NEW = new_key(AT - 90 * timedelta(days=1)), new_key(AT)
RING = KeyRing((OLD, NEW))

LOGIN = Authorization(
    client_id="ci_test_1",
    subject=TaxpayerId("C2584563222", "202001234567"),
    actor=TaxpayerId("D1111111111"),
    scopes=("InvoicingAPI", "Reports"),
    asked_scopes=None,
    permissions=("documents:submit", "documents:view"),
    at=AT,
)


def claims_of(login: Authorization = LOGIN) -> dict[str, Any]:
    audiences = {"InvoicingAPI": "InvoicingAPI", "Reports": "Reports"}
    return access_token_claims(
        login, issuer=ISSUER, jti="a-jti", status_index=0, audiences=audiences
    )


def verified(token: str, at: datetime = AT, ring: KeyRing = RING, **changes: Any) -> AccessToken:
    expected: dict[str, Any] = {"issuer": ISSUER, "audiences": {"InvoicingAPI"}, "at": at}
    return verify(token, ring, **(expected | changes))


def is_accepted(token: str, at: datetime) -> bool:
    try:
        return bool(verified(token, at))
    except InvalidToken:
        return False


def test_a_verified_token_says_what_was_decided() -> None:
    claims = claims_of()
    assert verified(sign(claims, NEW)) == AccessToken(
        subject=TaxpayerId("C2584563222", "202001234567"),
        actor="D1111111111",
        client_id="ci_test_1",
        jti="a-jti",
        scopes=("InvoicingAPI", "Reports"),
        permissions=("documents:submit", "documents:view"),
        issued_at=AT,
        expires_at=AT + HOUR,
        claims=claims,
    )


def test_a_taxpayer_that_acts_for_itself_has_neither_actor_nor_permissions() -> None:
    own = replace(LOGIN, subject=TaxpayerId("C25"), actor=None, permissions=())
    token = verified(sign(claims_of(own), NEW))
    assert (token.subject, token.actor, token.permissions) == (TaxpayerId("C25"), None, ())


def test_a_token_is_accepted_for_an_hour_and_a_minute_before_by_a_clock_that_is_behind() -> None:
    token = sign(claims_of(), NEW)
    moments = [AT - MINUTE - MOMENT, AT - MINUTE, AT, AT + HOUR - MOMENT, AT + HOUR]
    assert [is_accepted(token, at) for at in moments] == [False, True, True, True, False]


def test_an_expired_token_says_when_it_expired() -> None:
    with pytest.raises(InvalidToken, match=r"expired at 2026-11-21T11:00:00Z\. Log in again"):
        verified(sign(claims_of(), NEW), AT + HOUR)


def test_a_key_that_was_retired_signs_nothing_that_is_accepted() -> None:
    """An old key that leaks years later is worth nothing, although its row is still there."""
    gone = AT + timedelta(minutes=65)  # an hour for its last token, and five minutes of leeway
    for at, accepted in ((gone - SECOND, True), (gone, False), (gone + 999 * HOUR, False)):
        new_token = sign(claims_of(replace(LOGIN, at=at)), OLD)
        assert is_accepted(new_token, at) is accepted, at
        assert is_accepted(sign(claims_of(replace(LOGIN, at=at)), NEW), at)


@pytest.mark.parametrize(
    "claim", ["iss", "sub", "aud", "client_id", "jti", "iat", "exp", "scope", "taxpayer"]
)
def test_a_token_without_one_of_the_claims_of_the_contract_is_not_ours(claim: str) -> None:
    claims = claims_of()
    del claims[claim]
    with pytest.raises(InvalidToken, match=NOT_OURS):
        verified(sign(claims, NEW))


@pytest.mark.parametrize(
    "changes",
    [{"issuer": f"{ISSUER}/"}, {"issuer": "https://other.example.org"}, {"audiences": {"Other"}}],
)
def test_a_token_for_another_service_is_not_ours(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken, match=NOT_OURS):
        verified(sign(claims_of(), NEW), **changes)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": []},
        {"exp": "soon"},
        {"exp": 10**30},
        {"taxpayer": "C25"},
        {"taxpayer": {}},
        {"scope": ["InvoicingAPI"]},
        {"act": "D1111111111"},
        {"act": {"name": "x"}},
        {"permissions": 5},
    ],
)
def test_claims_of_another_shape_are_not_ours(claims: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken, match=NOT_OURS):
        verified(sign(claims_of() | claims, NEW))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "AT+JWT", "logout+jwt", None])
def test_another_kind_of_token_is_not_ours_though_our_key_signed_it(kind: str | None) -> None:
    header = {"typ": kind, "kid": NEW.kid}
    token = jwt.encode(claims_of(), NEW.private_key, "ES256", header)  # type: ignore[arg-type]
    with pytest.raises(InvalidToken, match=NOT_OURS):
        verified(token)
