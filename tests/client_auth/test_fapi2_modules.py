"""The modules of the OpenID Foundation's FAPI2 final plan about private_key_jwt, by their names.

Those that look at the token endpoint, in the plan's variant with client credentials; each test has
the name of its module, without `fapi2-security-profile-final-`.
"""

import hmac
import json
import time
from typing import Any
from uuid import uuid4

import jwt
import pytest
from django.conf import settings

from tests.client_auth.key_erp import KeyErp, new_key_erp

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


def assert_invalid_client(response: Any, says: str) -> None:
    body = json.loads(response.content)
    assert (response.status_code, body["error"]) == (400, "invalid_client")
    assert says in body["error_description"]


def now() -> int:
    return int(time.time())


def test_client_credentials_happy_flow() -> None:
    for algorithm in ("ES256", "PS256", "EdDSA"):
        assert new_key_erp(algorithm).login().status_code == 200


def test_ensure_client_assertion_with_iss_aud_succeeds(erp: KeyErp) -> None:
    assert erp.login(erp.assertion(aud=settings.AUTH_URL)).status_code == 200


@pytest.mark.parametrize(
    "audience",
    [
        f"{settings.AUTH_URL}/connect/token",
        f"{settings.AUTH_URL}/",
        settings.AUTH_URL.upper(),
        "https://other.example.org",
        "",
        None,
        [],
    ],
)
def test_ensure_client_assertion_with_wrong_aud_fails(erp: KeyErp, audience: Any) -> None:
    assert_invalid_client(erp.login(erp.assertion(aud=audience)), "must be the issuer")


def test_ensure_client_assertion_with_array_of_audiences(erp: KeyErp) -> None:
    issuer = settings.AUTH_URL
    assert erp.login(erp.assertion(aud=[issuer])).status_code == 200
    for audiences in ([issuer, "https://other"], [f"{issuer}/connect/token"], [issuer, issuer]):
        assert_invalid_client(erp.login(erp.assertion(aud=audiences)), "must be the issuer")


def test_ensure_client_assertion_with_exp_is_5_minutes_in_past_fails(erp: KeyErp) -> None:
    assert_invalid_client(erp.login(erp.assertion(exp=now() - 300)), "has expired")
    assert_invalid_client(erp.login(erp.assertion(exp=now() - 60)), "has expired")
    assert erp.login(erp.assertion(exp=now() - 5)).status_code == 200  # clocks differ


def test_ensure_client_assertion_with_exp_too_far_ahead_fails(erp: KeyErp) -> None:
    assert erp.login(erp.assertion(exp=now() + 300)).status_code == 200
    for seconds in (360, 3600, 1e300):
        far = erp.login(erp.assertion(exp=now() + seconds))
        assert_invalid_client(far, "more than 5 minutes ahead")


def test_ensure_client_assertion_without_exp_fails(erp: KeyErp) -> None:
    assert_invalid_client(erp.login(erp.assertion(exp=None)), "must have exp")


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_ensure_client_assertion_with_nbf_or_iat_8_seconds_in_the_future_succeeds(
    erp: KeyErp, claim: str
) -> None:
    for seconds in (8, 10):
        changed: dict[str, Any] = {claim: now() + seconds}
        assert erp.login(erp.assertion(**changed)).status_code == 200


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_ensure_client_assertion_with_nbf_or_iat_60_seconds_in_the_future_fails(
    erp: KeyErp, claim: str
) -> None:
    changed: dict[str, Any] = {claim: now() + 60}
    assert_invalid_client(erp.login(erp.assertion(**changed)), "in the future")
    assert erp.login(erp.assertion(iat=None)).status_code == 200  # it may be left out


def test_ensure_client_assertion_jti_reuse_fails(erp: KeyErp) -> None:
    assertion = erp.assertion()
    assert erp.login(assertion).status_code == 200
    assert_invalid_client(erp.login(assertion), "jti was used before")


@pytest.mark.parametrize("jti", [None, "", "j" * 129])
def test_ensure_client_assertion_without_jti_fails(erp: KeyErp, jti: Any) -> None:
    assert_invalid_client(erp.login(erp.assertion(jti=jti)), "must have a jti")


@pytest.mark.parametrize("changed", [{"iss": "x"}, {"sub": "x"}, {"iss": None}, {"sub": None}])
def test_ensure_client_assertion_with_different_iss_and_sub_fails(
    erp: KeyErp, changed: dict[str, Any]
) -> None:
    assert_invalid_client(erp.login(erp.assertion(**changed)), "iss and sub")


def test_ensure_client_id_in_token_endpoint_is_that_of_the_assertion(erp: KeyErp) -> None:
    other = new_key_erp()
    response = erp.login(client_id=other.client_id)
    assert_invalid_client(response, "is not the client_id in the form")


def test_ensure_signed_client_assertion_with_rs256_fails() -> None:
    erp = new_key_erp("PS256")
    assert_invalid_client(erp.login(erp.assertion(algorithm="RS256")), "PS256, ES256 or EdDSA")


def test_ensure_client_assertion_with_alg_none_fails(erp: KeyErp) -> None:
    unsigned = jwt.encode(erp.claims(), key="", algorithm="none", headers={"kid": erp.pair.kid})
    assert_invalid_client(erp.login(unsigned), "PS256, ES256 or EdDSA")


def test_ensure_client_assertion_signed_with_the_public_key_as_hmac_secret_fails(
    erp: KeyErp,
) -> None:
    secret = json.dumps(erp.pair.public_jwk).encode()
    header, payload, _signature = erp.assertion().split(".")
    header = jwt.utils.base64url_encode(
        json.dumps({"alg": "HS256", "kid": erp.pair.kid}).encode()
    ).decode()
    signature = hmac.digest(secret, f"{header}.{payload}".encode(), "sha256")
    forged = f"{header}.{payload}.{jwt.utils.base64url_encode(signature).decode()}"
    assert_invalid_client(erp.login(forged), "PS256, ES256 or EdDSA")


def test_ensure_client_assertion_with_invalid_signature_fails(erp: KeyErp) -> None:
    header, payload, signature = erp.assertion().split(".")
    for wrong in (
        signature[:-8] + signature[:8],  # of the right length
        signature[:-4],
        "",
        "A" * len(signature),  # r = s = 0
    ):
        forged = f"{header}.{payload}.{wrong}"
        assert_invalid_client(erp.login(forged), "its signature is wrong")


def test_ensure_client_assertion_of_another_client_fails(erp: KeyErp) -> None:
    other = new_key_erp()
    foreign = erp.assertion(iss=other.client_id, sub=other.client_id)
    assert_invalid_client(other.login(foreign), "is not accepted")


@pytest.mark.parametrize("typ", ["at+jwt", "dpop+jwt", "oauth-authz-req+jwt"])
def test_ensure_client_assertion_of_another_type_fails(erp: KeyErp, typ: str) -> None:
    assert_invalid_client(erp.login(erp.assertion(header={"typ": typ})), "typ in the header")


@pytest.mark.parametrize(
    "typ", ["JWT", "jwt", "application/client-authentication+jwt", "Client-Authentication+JWT"]
)
def test_ensure_client_assertion_types_of_older_libraries_succeed(erp: KeyErp, typ: str) -> None:
    assert erp.login(erp.assertion(header={"typ": typ})).status_code == 200
    assert erp.login(erp.assertion(header={"typ": None})).status_code == 200


def test_ensure_client_assertion_with_unknown_crit_fails(erp: KeyErp) -> None:
    assert_invalid_client(erp.login(erp.assertion(header={"crit": ["exp"]})), "crit")


def test_ensure_client_assertion_without_kid_fails(erp: KeyErp) -> None:
    for kid in ("", "\u2028", "line\nbreak"):
        assert_invalid_client(erp.login(erp.assertion(header={"kid": kid})), "kid")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "..",
        "a.b.c",
        "a.b.c.d.e",
        "bnVsbA.bnVsbA.bnVsbA",
        "W10.W10.W10",
        "ew.ew.ew",
        "é.é.é",
        f"eyJhbGciOiJFUzI1NiJ9.{'W1' * 500}.x",
        "{}.{}.{}",
    ],
)
def test_ensure_what_is_no_jwt_fails(erp: KeyErp, text: str) -> None:
    assert_invalid_client(erp.login(text), "client_assertion")


@pytest.mark.parametrize("claims", [{"exp": "soon"}, {"nbf": [1]}, {"jti": 7}, {"aud": 1}])
def test_ensure_claims_of_another_type_fail(erp: KeyErp, claims: dict[str, Any]) -> None:
    header, _payload, _signature = erp.assertion().split(".")
    payload = jwt.utils.base64url_encode(json.dumps(erp.claims() | claims).encode()).decode()
    assert_invalid_client(erp.login(f"{header}.{payload}.AA"), "has another type")


@pytest.mark.parametrize("jti", ["j", "j" * 128])
def test_ensure_client_assertion_with_the_shortest_and_the_longest_jti_succeeds(
    erp: KeyErp, jti: str
) -> None:
    assert erp.login(erp.assertion(jti=jti)).status_code == 200


@pytest.mark.parametrize(("length", "fault"), [(4096, "is wrong"), (4097, "longer than 4096")])
def test_ensure_client_assertion_is_read_up_to_4096_characters(
    erp: KeyErp, length: int, fault: str
) -> None:
    # Any signature has the right form; it fills up what is signed, unless no base64 has its length.
    signed = (erp.assertion(jti="j" * n).rpartition(".")[0] for n in range(1, 5))
    filled = (f"{text}.".ljust(length, "A") for text in signed)
    assertion = next(text for text in filled if len(text.rpartition(".")[2]) % 4 != 1)
    assert len(assertion) == length
    assert_invalid_client(erp.login(assertion), fault)


def test_ensure_long_client_assertion_fails(erp: KeyErp) -> None:
    long = erp.assertion(padding="x" * 4096)
    assert_invalid_client(erp.login(long), "longer than 4096 characters")


def test_ensure_a_jti_is_not_part_of_an_answer(erp: KeyErp) -> None:
    jti = str(uuid4())
    for response in (
        erp.login(erp.assertion(jti=jti, aud="x")),
        erp.login(erp.assertion(jti=jti)),
        erp.login(erp.assertion(jti=jti)),
    ):
        assert jti.encode() not in response.content
