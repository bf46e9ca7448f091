"""Which access tokens the package for API teams accepts (RFC 9068, RFC 8725)."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from jwt.algorithms import get_default_algorithms

from einvoicing_tokens import AccessToken, InsufficientScope, InvalidToken, Taxpayer, TokenVerifier
from einvoicing_tokens.claims import LEEWAY_SECONDS
from tests.packages.issuer import AT, JWKS, METADATA, Issuer, is_accepted, new_key
from tokens.keys.signer import sign


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(issuer: Issuer, header: dict[str, Any]) -> str:
    """A token of the issuer's key with exactly this header."""
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


def test_a_token_without_permissions_is_the_taxpayers_own_and_may_do_everything(
    issuer: Issuer,
) -> None:
    token = issuer.verifier().verify(issuer.token())
    assert (token.actor, token.permissions) == (None, None)
    assert token.may("documents:submit")
    token.require(scope="InvoicingAPI", permission="documents:cancel")


def test_an_intermediary_without_any_permission_left_may_do_nothing(issuer: Issuer) -> None:
    token = issuer.verifier().verify(issuer.token(is_intermediary=True, permissions=[]))
    assert token.permissions == ()
    assert not token.may("documents:submit")


def test_a_token_with_permissions_is_limited_by_them(issuer: Issuer) -> None:
    token = issuer.verifier().verify(issuer.token(permissions=["documents:view"]))
    assert not token.may("documents:submit")


def test_what_a_token_lacks_is_403_and_named(issuer: Issuer) -> None:
    token = issuer.verifier().verify(issuer.token(is_intermediary=True))
    with pytest.raises(InsufficientScope, match=r"the scope Reports\.") as scope:
        token.require(scope="Reports")
    assert scope.value.headers["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", scope="Reports"'
    )
    with pytest.raises(InsufficientScope, match="has not granted the permission documents:view"):
        token.require(scope="InvoicingAPI", permission="documents:view")
    token.require(scope="InvoicingAPI", permission="documents:submit")
    token.require()


@pytest.mark.parametrize("alg", ["ES256", "RS256", "PS256"])
def test_every_algorithm_of_the_service_is_accepted(issuer: Issuer, alg: str) -> None:
    issuer.keys = [new_key(alg)]
    assert issuer.verifier().verify(issuer.token()).client_id == "ci_test_1"


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt"])
def test_both_spellings_of_the_type_are_accepted(issuer: Issuer, typ: str) -> None:
    assert issuer.verifier().verify(issuer.token(typ=typ)).client_id == "ci_test_1"


# --- Who signed it --------------------------------------------------------------------------------


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


def test_the_public_key_is_no_shared_secret(issuer: Issuer) -> None:
    jwk = issuer.signer.public_jwk
    header = {"typ": "at+jwt", "alg": "HS256", "kid": issuer.signer.kid}
    signed = f"{encoded(header)}.{encoded(issuer.claims())}"
    for secret in (json.dumps(jwk), jwk["x"], "", base64.urlsafe_b64decode(jwk["x"] + "=")):
        key = secret if isinstance(secret, bytes) else secret.encode()
        mac = hmac.new(key, signed.encode(), hashlib.sha256).digest()
        refusal_of(issuer, f"{signed}.{encoded(mac)}")


def test_a_shared_secret_among_the_keys_is_not_used(issuer: Issuer) -> None:
    secret = {"kty": "oct", "k": encoded(b"s" * 32), "alg": "HS256", "kid": "shared"}
    keys = [secret, issuer.signer.public_jwk]
    issuer.answers[JWKS] = json.dumps({"keys": keys}).encode()
    header = {"typ": "at+jwt", "alg": "HS256", "kid": "shared"}
    signed = f"{encoded(header)}.{encoded(issuer.claims())}"
    mac = hmac.new(b"s" * 32, signed.encode(), hashlib.sha256).digest()
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


def test_a_changed_token_is_refused(issuer: Issuer) -> None:
    header, _, signature = issuer.token().split(".")
    changed = issuer.claims() | {"sub": "C9", "taxpayer": {"tin": "C9"}}
    refusal_of(issuer, f"{header}.{encoded(changed)}.{signature}")
    refusal_of(issuer, issuer.token()[:-4] + "AAAA")


def test_a_header_that_must_be_understood_is_refused(issuer: Issuer) -> None:
    header = {"typ": "at+jwt", "alg": "ES256", "kid": issuer.signer.kid}
    assert is_accepted(issuer.verifier(), signed(issuer, header))
    refusal_of(issuer, signed(issuer, header | {"crit": ["x"], "x": 1}))


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES384", "HS256", "none", None, ["ES256"]])
def test_the_key_chooses_the_algorithm_and_not_the_header(issuer: Issuer, alg: Any) -> None:
    refusal_of(issuer, signed(issuer, {"typ": "at+jwt", "alg": alg, "kid": issuer.signer.kid}))


@pytest.mark.parametrize(
    "text", ["", "a", "a.b.c", "e30.e30.", "\x00", "." * 9, "ü.ü.ü", "[" * 5000, "a" * 20_000]
)
def test_a_text_that_is_no_token_is_refused(issuer: Issuer, text: str) -> None:
    refusal_of(issuer, text)
    refusal_of(issuer, f"{encoded(text.encode())}.{encoded(text.encode())}.")
    assert not issuer.requests


def test_a_token_that_is_too_long_is_not_even_read(issuer: Issuer) -> None:
    assert is_accepted(issuer.verifier(), issuer.token(more="x" * 10_000))
    refusal_of(issuer, issuer.token(more="x" * 16_000))


def test_claims_that_are_no_object_are_refused(issuer: Issuer) -> None:
    for claims in (["a"], "text", 5, None):
        refusal_of(issuer, sign(claims, issuer.signer))  # type: ignore[arg-type]


# --- What it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claim", ["iss", "sub", "aud", "client_id", "jti", "iat", "exp", "scope", "taxpayer"]
)
def test_a_token_without_one_of_the_claims_of_the_contract_is_refused(
    issuer: Issuer, claim: str
) -> None:
    without: dict[str, Any] = {claim: None}
    refusal_of(issuer, issuer.token(**without))


def each(claim: str, *values: Any) -> list[dict[str, Any]]:
    return [{claim: value} for value in values]


@pytest.mark.parametrize(
    "changes",
    [
        *each("iss", "https://other.example.org", "", ["x"]),
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
    assert "not issued by the identity service" in str(refusal_of(issuer, issuer.token(**changes)))


def test_an_issuer_is_compared_letter_by_letter(issuer: Issuer) -> None:
    for other in (f"{issuer.url}/", issuer.url.upper(), issuer.url[:-1]):
        refusal_of(issuer, issuer.token(iss=other))


@pytest.mark.parametrize("audience", ["Other", "InvoicingAPI2", "", [], ["Other"], "invoicingapi"])
def test_a_token_for_another_api_is_refused_and_says_so(issuer: Issuer, audience: Any) -> None:
    refused = refusal_of(issuer, issuer.token(aud=audience))
    assert "meant for another API: its audience is not InvoicingAPI" in str(refused)


def test_one_audience_of_several_is_enough(issuer: Issuer) -> None:
    token = issuer.token(aud=["Reports", "InvoicingAPI"])
    assert is_accepted(issuer.verifier(), token)
    assert is_accepted(issuer.verifier(audience="Reports"), token)


def test_a_bound_token_is_not_accepted_from_a_bearer(issuer: Issuer) -> None:
    refused = refusal_of(issuer, issuer.token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3"}))
    assert "bound to a key or certificate" in str(refused)


def test_a_token_is_accepted_from_its_first_to_its_last_second_with_little_leeway(
    issuer: Issuer,
) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    not_before = issuer.token(nbf=int(AT.timestamp()) + 100)

    def is_accepted_at(seconds: float, encoded: str) -> bool:
        issuer.clock.seconds = seconds
        return is_accepted(verifier, encoded)

    seconds = [-10.1, -10, 0, 3600, 3609.9, 3610]
    assert LEEWAY_SECONDS == 10
    assert [is_accepted_at(at, token) for at in seconds] == [False, True, True, True, True, False]
    accepted = [is_accepted_at(at, not_before) for at in (0, 89.9, 90, 100)]
    assert accepted == [False, False, True, True]


def test_an_expired_token_says_when_it_expired(issuer: Issuer) -> None:
    token = issuer.token()
    issuer.clock.seconds = 3610
    assert (
        str(refusal_of(issuer, token)) == "The token expired at 2026-11-21T11:00:00Z. Log in again."
    )


# --- The header -----------------------------------------------------------------------------------


def test_a_request_with_one_bearer_token_is_let_in(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    for scheme in ("Bearer", "bearer", "BEARER", "Bearer  "):
        assert verifier.authenticate(f"{scheme} {token}").jti == "a-jti"
    assert verifier.authenticate(None, f"Bearer {token}").jti == "a-jti"


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


# --- The issuer -----------------------------------------------------------------------------------


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
