"""The checks of a proof, point by point as RFC 9449 section 4.3 numbers them, on the wire."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_ec
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as new_rsa
from django.conf import settings

from tests.client_auth.key_erp import KeyPair, new_pair, signed_as
from tests.dpop.dpop_erp import NONCE, DpopErp, new_dpop_erp, reason_of
from tokens.dpop.proof import hash_of_token

pytestmark = pytest.mark.django_db
ADDRESS = f"{settings.AUTH_URL}/connect/token"


@pytest.fixture
def erp() -> DpopErp:
    return new_dpop_erp()


def now() -> int:
    return int(time.time())


def encoded(value: Any) -> str:
    return jwt.utils.base64url_encode(json.dumps(value).encode()).decode()


def assert_invalid(erp: DpopErp, proof: str, says: str) -> None:
    response = erp.post(proof)
    body = json.loads(response.content)
    assert (response.status_code, body["error"]) == (400, "invalid_dpop_proof")
    assert says in body["error_description"]
    assert response[NONCE]


def test_what_is_right_is_accepted(erp: DpopErp) -> None:
    for proof in (erp.proof(), f" {erp.proof()} ", erp.proof(unknown="claim")):
        assert erp.post(proof).status_code == 200


def test_1_more_than_one_header(erp: DpopErp) -> None:
    assert_invalid(erp, f"{erp.proof()},{erp.proof()}", "more than once")
    assert_invalid(erp, f"{erp.proof()}, {erp.proof()}", "more than once")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "..",
        "a.b.c",
        "a.b.c.d.e",
        "bnVsbA.bnVsbA.bnVsbA",
        "W10.W10.W10",
        "ew.ew.ew",
        f"{'W1' * 500}.{'W1' * 500}.x",
        "{}.{}.{}",
    ],
)
def test_2_no_jwt(erp: DpopErp, text: str) -> None:
    assert_invalid(erp, text, "is not a signed JWT")


def test_2_a_long_one_is_not_read(erp: DpopErp) -> None:
    assert_invalid(erp, erp.proof(padding="x" * 4096), "longer than 4096")


@pytest.mark.parametrize(
    "claims", [{"jti": 7}, {"htm": ["POST"]}, {"htu": {}}, {"iat": "now"}, {"ath": 1}]
)
def test_2_values_of_another_type(erp: DpopErp, claims: dict[str, Any]) -> None:
    header, _payload, signature = erp.proof().split(".")
    assert_invalid(erp, f"{header}.{encoded(erp.claims() | claims)}.{signature}", "another type")


@pytest.mark.parametrize(
    ("claim", "says"), [("jti", "jti"), ("htm", "htm"), ("htu", "htu"), ("iat", "must have iat")]
)
def test_3_a_claim_is_missing(erp: DpopErp, claim: str, says: str) -> None:
    for value in (None, "" if claim != "iat" else None):
        changed: dict[str, Any] = {claim: value}
        assert_invalid(erp, erp.proof(**changed), says)


def test_3_the_length_of_jti_is_bounded(erp: DpopErp) -> None:
    assert erp.post(erp.proof(jti="j" * 128)).status_code == 200
    assert_invalid(erp, erp.proof(jti="j" * 129), "at most 128 characters")


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "DPOP+JWT", "application/dpop+jwt", "", None])
def test_4_another_type(erp: DpopErp, typ: Any) -> None:
    assert_invalid(erp, erp.proof(header={"typ": typ}), "must be dpop+jwt")


def test_5_another_algorithm() -> None:
    erp = new_dpop_erp("PS256")
    for algorithm in ("RS256", "PS512"):
        assert_invalid(erp, erp.proof(algorithm=algorithm), "PS256")
    assert_invalid(erp, erp.proof(algorithm="HS256", key="k" * 32), "PS256")
    unsigned = jwt.encode(
        erp.claims(), key="", algorithm="none", headers={"typ": "dpop+jwt", "jwk": erp.jwk}
    )
    assert_invalid(erp, unsigned, "PS256")


def test_5_eddsa_by_its_new_name() -> None:
    """RFC 9864: oauth4webapi, openid-client and jose write `Ed25519`."""
    erp = new_dpop_erp("EdDSA")
    assert erp.post(signed_as("Ed25519", erp.proof(), erp.pair)).status_code == 200


def test_5_the_algorithm_of_another_kind_of_key(erp: DpopErp) -> None:
    other = new_pair("EdDSA")
    proof = erp.proof(pair=other)  # signed with EdDSA, while jwk is an EC key
    assert_invalid(erp, proof, "EdDSA and an Ed25519 key")


def test_5_crit_is_refused(erp: DpopErp) -> None:
    header, payload, signature = erp.proof().split(".")
    members = json.loads(jwt.utils.base64url_decode(header)) | {"crit": ["exp"], "exp": 1}
    assert_invalid(erp, f"{encoded(members)}.{payload}.{signature}", "crit")


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_6_the_signature_is_that_of_the_key_in_the_header(algorithm: str) -> None:
    erp = new_dpop_erp(algorithm)
    assert_invalid(erp, erp.proof(pair=new_pair(algorithm)), "signature of the proof is wrong")
    header, payload, signature = erp.proof().split(".")
    for wrong in (signature[:-8] + signature[:8], "", "A" * len(signature)):
        assert_invalid(erp, f"{header}.{payload}.{wrong}", "signature of the proof is wrong")
    changed = encoded(erp.claims(jti="another"))
    assert_invalid(erp, f"{header}.{changed}.{signature}", "signature of the proof is wrong")


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_7_a_private_key(algorithm: str) -> None:
    erp = new_dpop_erp(algorithm)
    private = {k: v for k, v in erp.pair.private_jwk.items() if k != "kid"}
    assert_invalid(erp, erp.proof(header={"jwk": private}), "must be a public key")
    assert "d" in private


UNUSABLE: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "a text": lambda: "key",
    "a list": lambda: [{}],
    "nothing in it": dict,
    "symmetric": lambda: {"kty": "oct", "k": base64.b64encode(b"k" * 32).decode()},
    "another curve": lambda: KeyPair("ES256", new_ec(SECP384R1()), "x").public_jwk,
    "a point that is not on the curve": lambda: {**new_pair().public_jwk, "x": "AAAA"},
    "a short RSA key": lambda: KeyPair("PS256", new_rsa(65537, 1024), "x").public_jwk,  # noqa: S505 - it is refused
    "another exponent": lambda: KeyPair("PS256", new_rsa(3, 2048), "x").public_jwk,
    "numbers instead of texts": lambda: {"kty": "EC", "crv": "P-256", "x": 1, "y": 2},
    "kty of another type": lambda: {"kty": ["EC"], "crv": {"P": 256}},
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_7_what_is_no_public_key_that_could_be_registered(name: str, erp: DpopErp) -> None:
    assert_invalid(erp, erp.proof(header={"jwk": UNUSABLE[name]()}), "must be a public key")


@pytest.mark.parametrize("method", ["GET", "post", "PUT"])
def test_8_another_method(erp: DpopErp, method: str) -> None:
    assert_invalid(erp, erp.proof(htm=method), "not the method")


@pytest.mark.parametrize(
    "address",
    [
        "http://testserver/connect/token",  # what the header Host says
        settings.AUTH_URL,
        f"{ADDRESS}/",
        f"{settings.AUTH_URL}/connect/introspect",
        f"{settings.AUTH_URL}/connect/../token",
        ADDRESS.replace("http:", "https:"),
        ADDRESS.replace("127.0.0.1", "127.0.0.2"),
        ADDRESS.replace("//", "//user@"),
        "/connect/token",
        "http://[",
        "http://127.0.0.1:x/connect/token",
        "",
    ],
)
def test_9_another_address(erp: DpopErp, address: str) -> None:
    assert_invalid(erp, erp.proof(htu=address), "not the address")


@pytest.mark.parametrize(
    "address",
    [
        f"{ADDRESS}?query",
        f"{ADDRESS}#fragment",
        ADDRESS.replace("http", "HTTP"),
        ADDRESS.replace("connect", "%63onnect"),
        ADDRESS.replace("/connect", "/x/../connect"),
    ],
)
def test_9_the_same_address_in_another_form(erp: DpopErp, address: str) -> None:
    assert erp.post(erp.proof(htu=address)).status_code == 200


def test_10_the_nonce(erp: DpopErp) -> None:
    for nonce in (None, "", "another", f"{erp.nonce}x"):
        assert reason_of(erp.post(erp.proof(nonce=nonce))) == "use_dpop_nonce"


@pytest.mark.parametrize("seconds", [-61 - 1, -300, -1e300])
def test_11_too_old(erp: DpopErp, seconds: float) -> None:
    assert_invalid(erp, erp.proof(iat=now() + seconds), "more than 60 seconds ago")


@pytest.mark.parametrize("seconds", [12, 60, 1e300])
def test_11_in_the_future(erp: DpopErp, seconds: float) -> None:
    assert_invalid(erp, erp.proof(iat=now() + seconds), "in the future")


@pytest.mark.parametrize("seconds", [-50, -1, 0.5, 8])
def test_11_clocks_differ_a_little(erp: DpopErp, seconds: float) -> None:
    assert erp.post(erp.proof(iat=now() + seconds)).status_code == 200


def test_12_a_proof_for_an_access_token_logs_in_as_well(erp: DpopErp) -> None:
    """`ath` is for protected APIs (tests/dpop/test_protected_api.py)."""
    assert erp.post(erp.proof(ath=hash_of_token("x"))).status_code == 200


def test_no_answer_repeats_what_the_proof_says(erp: DpopErp) -> None:
    wrong = {"htu": "https://secret.example", "jti": "secret" * 30, "htm": "secret"}
    for claim, value in wrong.items():
        claims: dict[str, Any] = {claim: value}
        assert b"secret" not in erp.post(erp.proof(**claims)).content
