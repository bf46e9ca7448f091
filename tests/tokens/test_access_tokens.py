"""What an access token says, and which ones are accepted until when (RFC 9068). Pure."""

import hashlib
import hmac
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.utils import base64url_encode
from msgspec.structs import replace

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.access_tokens.claims import access_token_claims
from tokens.access_tokens.verification import AccessToken, InvalidToken, verify
from tokens.keys.ring import Key, KeyRing, generate, public_jwk
from tokens.keys.signer import sign
from tokens.lifetime import TOKEN_LIFETIME, renew_at

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
ISSUED_AT = 1795255200
MOMENT, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
HOUR = timedelta(hours=1)
ISSUER = "https://identity.example.org"
AUDIENCES = {"InvoicingAPI": "InvoicingAPI", "Reports": "Reporting", "Archive": "Reporting"}
LOGIN = Authorization(
    client_id="ci_live_1",
    subject=TaxpayerId("C2584563222"),
    actor=None,
    scopes=("InvoicingAPI",),
    asked_scopes=None,
    permissions=(),
    at=AT + SECOND - MOMENT,
)
CLAIMS = {
    "iss": ISSUER,
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


def claims_of(login: Authorization = LOGIN) -> dict[str, Any]:
    return access_token_claims(
        login, issuer=ISSUER, jti="a-jti", status_index=2**20 + 7, audiences=AUDIENCES
    )


def new_key(signs_from: datetime) -> Key:
    private_key = generate("ES256")
    jwk = public_jwk(private_key, "ES256")
    return Key(jwk["kid"], "ES256", signs_from, jwk, private_key)


OLD, NEW = new_key(AT - 90 * timedelta(days=1)), new_key(AT)
RING = KeyRing((OLD, NEW))


def verified(token: str, at: datetime = AT) -> AccessToken:
    return verify(token, RING, issuer=ISSUER, audiences={"InvoicingAPI", "Reporting"}, at=at)


def is_accepted(token: str, at: datetime) -> bool:
    try:
        return bool(verified(token, at))
    except InvalidToken:
        return False


BOUND = {TokenBinding.DPOP: {"jkt": "a-thumbprint"}, TokenBinding.TLS: {"x5t#S256": "a-thumbprint"}}
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


@pytest.mark.parametrize(("changes", "differs"), DIFFERENCES)
def test_a_login_has_these_claims_and_no_other(
    changes: dict[str, Any], differs: dict[str, Any]
) -> None:
    """And they are read back: a verified token says what was decided."""
    login = replace(LOGIN, **changes)
    found = claims_of(login)
    assert found == CLAIMS | differs
    assert {type(found["iat"]), type(found["exp"])} == {int}
    assert verified(sign(found, NEW)) == AccessToken(
        subject=login.subject,
        actor=str(login.actor) if login.actor else None,
        client_id="ci_live_1",
        jti="a-jti",
        scopes=login.scopes,
        permissions=login.permissions,
        issued_at=AT,
        expires_at=AT + HOUR,
        confirmation=login.confirmation,
        claims=found,
    )


def test_a_scope_without_an_audience_gives_no_token() -> None:
    with pytest.raises(KeyError):
        claims_of(replace(LOGIN, scopes=("Unknown",)))


def test_clients_renew_apart_between_half_and_nine_tenths_of_the_life() -> None:
    moments = [renew_at(f"ci_{number}", AT, TOKEN_LIFETIME) - AT for number in range(10_000)]
    assert timedelta(minutes=30) <= min(moments) < timedelta(minutes=30, seconds=5)
    assert timedelta(minutes=53, seconds=55) < max(moments) <= timedelta(minutes=54)
    in_each_minute = Counter(moment // timedelta(minutes=1) for moment in moments)
    assert max(in_each_minute.values()) < 1.5 * len(moments) / 24
    assert renew_at("ci_1", AT, TOKEN_LIFETIME) - AT == moments[1], "the same for one client"


# --- Which ones are accepted ----------------------------------------------------------------------


def test_a_token_is_accepted_for_an_hour_and_a_minute_before_by_a_clock_that_is_behind() -> None:
    token = sign(claims_of(), NEW)
    moments = [AT - MINUTE - MOMENT, AT - MINUTE, AT, AT + HOUR - MOMENT, AT + HOUR]
    assert [is_accepted(token, at) for at in moments] == [False, True, True, True, False]
    with pytest.raises(InvalidToken, match=r"expired at 2026-11-21T11:00:00Z\. Log in again"):
        verified(token, AT + HOUR)


def test_a_key_that_was_retired_signs_nothing_that_is_accepted() -> None:
    """An old key that leaks years later is worth nothing, although its row is still there."""
    gone = AT + timedelta(minutes=65)  # an hour for its last token, and five minutes of leeway
    for at, accepted in ((gone - SECOND, True), (gone, False), (gone + 999 * HOUR, False)):
        assert is_accepted(sign(claims_of(replace(LOGIN, at=at)), OLD), at) is accepted, at
        assert is_accepted(sign(claims_of(replace(LOGIN, at=at)), NEW), at)


def assert_not_ours(token: str) -> None:
    with pytest.raises(InvalidToken, match="not issued by this service"):
        verified(token)


@pytest.mark.parametrize(
    "changes",
    [
        *({claim: None} for claim in ("iss", "sub", "aud", "client_id", "jti", "iat", "exp")),
        *({claim: None} for claim in ("scope", "taxpayer")),
        *({"iss": issuer} for issuer in (f"{ISSUER}/", "https://other.example.org")),
        *({"aud": "Other"}, {"aud": []}),
        *({"exp": exp} for exp in ("soon", 10**30)),
        *({"taxpayer": "C25"}, {"taxpayer": {}}),
        *({"scope": ["InvoicingAPI"]}, {"permissions": 5}),
        *({"act": actor} for actor in ("D1111111111", {"name": "x"})),
    ],
    ids=str,
)
def test_other_claims_are_not_ours_though_our_key_signed_them(changes: dict[str, Any]) -> None:
    claims = {name: value for name, value in (claims_of() | changes).items() if value is not None}
    assert_not_ours(sign(claims, NEW))


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64url_encode(data).decode()


ACTING = replace(LOGIN, actor=ACTOR, permissions=("x:y",))
HEADER = {"typ": "at+jwt", "alg": "ES256", "kid": NEW.kid}
RIGHT, STRANGER = sign(claims_of(), NEW), new_key(AT)


def with_header(signature: str = RIGHT.rpartition(".")[2], **changes: Any) -> str:
    """The right token, but for its header; a member given as None is left out."""
    header = {name: value for name, value in (HEADER | changes).items() if value is not None}
    return f"{encoded(header)}.{RIGHT.split('.')[1]}.{signature}"


def signed(key: Key, **changes: Any) -> str:
    return jwt.encode(claims_of(), key.private_key, "ES256", HEADER | changes)  # type: ignore[arg-type]


def with_mac(secret: bytes) -> str:
    """The classic attack: the public key, which everybody knows, as the secret of an HMAC."""
    content = with_header(alg="HS256").rpartition(".")[0]
    return f"{content}.{encoded(hmac.new(secret, content.encode(), hashlib.sha256).digest())}"


def last_letter_changed() -> str:
    """The last of the 86 letters of a signature carries four bits that are not used."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return RIGHT[:-1] + letters[letters.index(RIGHT[-1]) ^ 1]


PUBLIC_KEY = NEW.private_key.public_key()  # type: ignore[union-attr]
FOREIGN_TOKENS = {
    "alg none": with_header("", alg="none"),
    "no alg": with_header(alg=None),
    "HS256 with the public key as PEM":
        with_mac(PUBLIC_KEY.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)),
    "HS256 with the public key as JWK": with_mac(json.dumps(NEW.public_jwk).encode()),
    "RS256 with an EC key": with_header(alg="RS256"),
    "another key": signed(STRANGER, kid=STRANGER.kid),
    "another key under our kid": signed(STRANGER),
    "another key in the header": signed(STRANGER, jwk=STRANGER.public_jwk),
    "no kid": with_header(kid=None),
    "kid a path": with_header(kid="../../dev/null"),
    "crit": signed(NEW, crit=["x"], x=1),
    "detached": with_header(b64=False),
    "header nested too deep": f"{encoded(b'[' * 20_000)}.e30.e30",
    "header not UTF-8": f"{encoded(bytes(range(128, 256)))}.e30.e30",
    "header not JSON": f"{encoded(b'{')}.e30.e30",
    "payload of another token": RIGHT.replace(RIGHT.split(".")[1], encoded(claims_of(ACTING))),
    "last letter changed": last_letter_changed(),
    "an encrypted token": f"{RIGHT}.e30.e30",
    "a client secret": "cs_test_0123456789",
}  # fmt: skip


@pytest.mark.parametrize("token", FOREIGN_TOKENS.values(), ids=FOREIGN_TOKENS)
def test_a_token_that_our_key_has_not_signed_as_it_is_is_not_ours(token: str) -> None:
    assert is_accepted(signed(NEW), AT)
    assert_not_ours(token)


@pytest.mark.parametrize("kind", ["JWT", "jwt", "AT+JWT", "logout+jwt", None])
def test_another_kind_of_token_is_not_ours_though_our_key_signed_it(kind: str | None) -> None:
    header = {"typ": kind, "kid": NEW.kid}
    assert_not_ours(jwt.encode(claims_of(), NEW.private_key, "ES256", header))  # type: ignore[arg-type]
