"""Which access tokens the package for API teams accepts (RFC 9068, RFC 8725)."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from jwt.algorithms import get_default_algorithms

from einvoicing_tokens import AccessToken, InvalidToken, Taxpayer, TokenVerifier
from einvoicing_tokens.claims import LEEWAY_SECONDS
from tests.packages.issuer import AT, JWKS, METADATA, Issuer, is_accepted, new_key
from tokens.keys.signer import sign


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(issuer: Issuer, header: dict[str, Any]) -> str:
    content = f"{encoded(header)}.{encoded(issuer.claims())}"
    algorithm = get_default_algorithms()["ES256"]
    return f"{content}.{encoded(algorithm.sign(content.encode(), issuer.signer.private_key))}"


def refusal_of(issuer: Issuer, token: str, **options: Any) -> InvalidToken:
    with pytest.raises(InvalidToken) as refused:
        issuer.verifier(**options).verify(token)
    assert refused.value.status == 401
    assert refused.value.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    return refused.value


def test_a_token_of_an_intermediary_says_whom_it_represents_and_what_it_may_do(
    issuer: Issuer,
) -> None:
    token = issuer.verifier().verify(issuer.token(is_intermediary=True))
    assert token == AccessToken(
        taxpayer=Taxpayer("C2584563222", "202001234567"),
        actor="D1111111111",
        client_id="ci_test_1",
        jti="a-jti",
        scopes=("InvoicingAPI",),
        permissions=("documents:submit",),
        issued_at=AT,
        expires_at=AT + timedelta(hours=1),
        claims={},
    )
    assert str(token.taxpayer) == "C2584563222:202001234567"
    codes = ("documents:submit", "documents:view", "documents:sub", "")
    assert [token.may(code) for code in codes] == [True, False, False, False]


@pytest.mark.parametrize(
    ("claims", "permissions", "allowed"),
    [
        ({}, None, {"documents:submit", "documents:view"}),  # the taxpayer's own: everything
        ({"is_intermediary": True, "permissions": []}, (), set()),
        ({"permissions": ["documents:view"]}, ("documents:view",), {"documents:view"}),
    ],
    ids=["own", "none", "one"],
)
def test_a_token_is_limited_by_its_permissions_if_it_has_some(
    issuer: Issuer, claims: dict[str, Any], permissions: Any, allowed: set[str]
) -> None:
    token = issuer.verifier().verify(issuer.token(**claims))
    assert token.permissions == permissions
    assert {code for code in ("documents:submit", "documents:view") if token.may(code)} == allowed


@pytest.mark.parametrize("typ", ["JWT", "at+JWT", "statuslist+jwt", "token-introspection+jwt", ""])
def test_another_kind_of_jwt_is_refused_though_our_key_signed_it(issuer: Issuer, typ: str) -> None:
    refusal_of(issuer, issuer.token(typ=typ))
    assert not issuer.requests, "no key is needed to see that"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", ""])
def test_a_token_without_a_signature_is_refused(issuer: Issuer, alg: str) -> None:
    header = {"typ": "at+jwt", "alg": alg, "kid": issuer.signer.kid}
    unsigned = f"{encoded(header)}.{encoded(issuer.claims())}."
    refusal_of(issuer, unsigned)
    refusal_of(issuer, unsigned + issuer.token().rpartition(".")[2])


def test_no_shared_secret_verifies_a_token(issuer: Issuer) -> None:
    """Neither the public key taken for one, nor one among the published keys."""
    jwk = issuer.signer.public_jwk
    published = {"kty": "oct", "k": encoded(b"s" * 32), "alg": "HS256", "kid": "shared"}
    issuer.answers[JWKS] = json.dumps({"keys": [published, jwk]}).encode()
    x = base64.urlsafe_b64decode(jwk["x"] + "=")
    for kid, secret in (
        *((issuer.signer.kid, s) for s in (json.dumps(jwk).encode(), jwk["x"].encode(), b"", x)),
        ("shared", b"s" * 32),
    ):
        header = {"typ": "at+jwt", "alg": "HS256", "kid": kid}
        signed = f"{encoded(header)}.{encoded(issuer.claims())}"
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        refusal_of(issuer, f"{signed}.{encoded(mac)}")
    assert is_accepted(issuer.verifier(), issuer.token())


def test_a_token_of_an_attackers_key_is_refused_whatever_its_header_names(issuer: Issuer) -> None:
    stranger = new_key()
    refusal_of(issuer, issuer.token(key=stranger))
    _, payload, signature = issuer.token(key=stranger).split(".")
    for header in (
        {"kid": issuer.signer.kid},
        {"kid": issuer.signer.kid, "jwk": stranger.public_jwk},
        {"kid": stranger.kid, "jwk": stranger.public_jwk, "jku": f"{issuer.url}/keys"},
        {"kid": None},
        {"kid": [issuer.signer.kid]},
        {},
    ):
        named = {"typ": "at+jwt", "alg": "ES256", **header}
        refusal_of(issuer, f"{encoded(named)}.{payload}.{signature}")
    assert set(issuer.requests) <= {METADATA, JWKS}, "no address of a header is asked"


@pytest.mark.parametrize(
    "more",
    [
        {"crit": ["x"], "x": 1},  # a header that must be understood
        # The key chooses the algorithm, not the header.
        *({"alg": alg} for alg in ("RS256", "PS256", "ES384", "HS256", "none", None, ["ES256"])),
    ],
    ids=str,
)
def test_another_header_of_a_right_signature_is_refused(
    issuer: Issuer, more: dict[str, Any]
) -> None:
    header = {"typ": "at+jwt", "alg": "ES256", "kid": issuer.signer.kid}
    assert is_accepted(issuer.verifier(), signed(issuer, header))
    refusal_of(issuer, signed(issuer, header | more))


@pytest.mark.parametrize(
    "text", ["", "a", "a.b.c", "e30.e30.", "\x00", "." * 9, "ü.ü.ü", "[" * 5000, "a" * 20_000]
)
def test_a_text_that_is_no_token_is_refused(issuer: Issuer, text: str) -> None:
    refusal_of(issuer, text)
    refusal_of(issuer, f"{encoded(text.encode())}.{encoded(text.encode())}.")
    assert not issuer.requests


def test_a_token_that_is_too_long_and_claims_that_are_no_object_are_refused(issuer: Issuer) -> None:
    assert is_accepted(issuer.verifier(), issuer.token(more="x" * 10_000))
    refusal_of(issuer, issuer.token(more="x" * 16_000))
    for claims in (["a"], "text", 5, None):
        refusal_of(issuer, sign(claims, issuer.signer))  # type: ignore[arg-type]


def each(claim: str, *values: Any) -> list[dict[str, Any]]:
    return [{claim: value} for value in values]


@pytest.mark.parametrize(
    "changes",
    [
        *({claim: None} for claim in ("iss", "sub", "aud", "client_id", "jti", "iat", "exp")),
        *({claim: None} for claim in ("scope", "taxpayer")),
        # An issuer is compared letter by letter.
        *each("iss", "https://other.example.org", "", ["x"], "{url}/", "HTTP://{host}", "{url}0"),
        *each("exp", "soon", 10**30, True, 1.5, -(10**30)),
        *each("iat", "now", 1.5, False, []),
        *each("nbf", "now", 1.5),
        *each("taxpayer", "C25", {}, {"tin": ""}, {"tin": 5}, ["tin"]),
        *each("taxpayer", {"tin": "C2584563222"}, {"tin": "C2584563222", "rob": ""}),
        {"taxpayer": {"tin": "C9999999999", "rob": "202001234567"}},
        {"sub": "C9999999999:202001234567"},
        *each("scope", ["InvoicingAPI"], "", 5),
        *each("act", "D1111111111", {"name": "x"}, {"sub": ""}, []),
        {"act": {"sub": "D1111111111"}},  # without permissions
        *each("permissions", 5, "documents:submit", {}, [5], [""], [None]),
        {"client_id": 5},
        {"jti": ["a"]},
        *each("aud", 5, {"InvoicingAPI": 1}),
    ],
    ids=str,
)
def test_claims_of_another_shape_are_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    changes = {name: issuer.in_place(value, issuer) for name, value in changes.items()}
    assert "not issued by the identity service" in str(refusal_of(issuer, issuer.token(**changes)))


@pytest.mark.parametrize("audience", ["Other", "InvoicingAPI2", "", [], ["Other"], "invoicingapi"])
def test_a_token_for_another_api_is_refused_and_says_so(issuer: Issuer, audience: Any) -> None:
    refused = refusal_of(issuer, issuer.token(aud=audience))
    assert "meant for another API: its audience is not InvoicingAPI" in str(refused)


def test_a_token_is_accepted_from_its_first_to_its_last_second_with_little_leeway(
    issuer: Issuer,
) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    not_before = issuer.token(nbf=int(AT.timestamp()) + 100)
    assert LEEWAY_SECONDS == 10
    for sent, moments in (
        (token, {-120.1: False, -120: True, 0: True, 3600: True, 3609.9: True, 3610: False}),
        (not_before, {-20.1: False, -20: True, 100: True}),
    ):
        for seconds, accepted in moments.items():
            issuer.clock.seconds = seconds
            assert is_accepted(verifier, sent) is accepted, seconds
    issuer.clock.seconds = 3610
    expired = "The token expired at 2026-11-21T11:00:00Z. Log in again."
    assert str(refusal_of(issuer, token)) == expired


def test_a_request_without_one_bearer_token_is_refused_and_told_how(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    for headers, text in (
        ((), "No access token was sent"),
        ((None,), "No access token was sent"),
        (("",), "No access token was sent"),
        (("Basic eDp5",), "No access token was sent"),
        (("Bearer",), "must be Bearer and one token"),
        ((f"Bearer {token} {token}",), "must be Bearer and one token"),
        ((f"Bearer {token},Bearer {token}",), "must be Bearer and one token"),
        ((f"Bearer {token}\n",), "must be Bearer and one token"),
        ((f"Bearer {token}", f"Bearer {token}"), "Send it once"),
        ((f"Bearer {token}", "Basic eDp5"), "Send it once"),
    ):
        with pytest.raises(InvalidToken, match=text):
            verifier.authenticate(*headers)


def test_no_refusal_repeats_what_was_sent(issuer: Issuer) -> None:
    """A header that is quoted in an answer ends up in logs, and may break the answer."""
    for sent in ('x"\r\nX: y', issuer.token(aud='"Other"'), issuer.token(iss='"', typ="x")):
        description = refusal_of(issuer, sent).body["error_description"]
        assert sent not in description
        assert all(0x20 <= ord(c) <= 0x7E and c not in '"\\' for c in description)


@pytest.mark.parametrize(
    "issuer_url",
    [
        *("", "id.example.org", "http://id.example.org", "https://id.example.org/", "https://"),
        *("https://id.example.org?x=1", "https://id.example.org#x", "ftp://id.example.org"),
        *("http://127.0.0.1.example.org", "http://localhost@example.org"),
    ],
)
def test_an_issuer_that_cannot_be_right_is_refused_at_the_start(issuer_url: str) -> None:
    with pytest.raises(ValueError, match="AUTH_URL of the identity service"):
        TokenVerifier(issuer_url, audience="InvoicingAPI")
    TokenVerifier("https://id.example.org", audience="InvoicingAPI")
