"""Which keys a system user can be given; each is stored anew from its public numbers."""

import base64
import json
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import HealthCheck, given, settings, strategies as st
from joserfc.jwk import JWKRegistry

from taxpayers.client_keys import KeyFault, UnusableKey, load_key, read_client_keys, read_public_jwk
from tests.client_auth.key_erp import jwks, new_pair

each_algorithm = pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])


@cache
def public_ps256() -> dict[str, Any]:
    return new_pair("PS256").public_jwk


def fault_of(text: str) -> KeyFault:
    with pytest.raises(UnusableKey) as refused:
        read_client_keys(text)
    assert str(refused.value) == refused.value.fault  # and nothing of the text
    assert refused.value.__cause__ is None
    return refused.value.fault


def pem(key: Any) -> str:
    text: str = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return text


@each_algorithm
def test_a_key_is_read_as_jwk_as_set_and_as_pem(algorithm: str) -> None:
    pair = new_pair(algorithm)
    (from_jwk,) = read_client_keys(json.dumps(pair.public_jwk))
    (from_set,) = read_client_keys(jwks(pair))
    (from_pem,) = read_client_keys(f"\n{pem(pair.private.public_key())}\n")
    assert from_jwk == from_set
    assert from_jwk.kid == pair.kid
    stored, of_pem = json.loads(from_jwk.jwk), json.loads(from_pem.jwk)
    assert stored | {"kid": of_pem["kid"]} == of_pem
    assert stored == pair.public_jwk | {"alg": algorithm, "use": "sig"}
    assert pem(load_key(from_jwk.jwk)) == pem(pair.private.public_key())


@each_algorithm
def test_a_key_without_kid_is_named_by_its_thumbprint(algorithm: str) -> None:
    public = new_pair(algorithm).public_jwk
    del public["kid"]
    (key,) = read_client_keys(json.dumps(public))
    assert key.kid == JWKRegistry.import_key(public).thumbprint()  # RFC 7638, by another library


@each_algorithm
def test_a_private_key_is_refused_in_every_form(algorithm: str) -> None:
    pair = new_pair(algorithm)
    private = pair.private_jwk
    for text in (
        json.dumps(private),
        json.dumps({"keys": [new_pair().public_jwk, private]}),
        pair.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        '{"kty": "oct", "k": "c2VjcmV0"}',  # a shared secret
    ):
        assert fault_of(text) is KeyFault.PRIVATE


def rsa_jwk(bits: int, exponent: str = "AQAB") -> str:
    """Its modulus is no product of primes, which is not checked."""
    modulus = base64.urlsafe_b64encode((2 ** (bits - 1) + 1).to_bytes((bits + 7) // 8))
    return json.dumps({"kty": "RSA", "n": modulus.rstrip(b"=").decode(), "e": exponent})


def test_weak_and_unusual_keys_are_refused() -> None:
    small = rsa.generate_private_key(65537, 1024)  # noqa: S505 - too short
    other_curve = ec.generate_private_key(ec.SECP384R1())
    for text, fault in (
        (rsa_jwk(2047), KeyFault.RSA_LENGTH),
        (rsa_jwk(4097), KeyFault.RSA_LENGTH),
        (rsa_jwk(2048, exponent="Aw"), KeyFault.RSA_EXPONENT),
        (pem(small.public_key()), KeyFault.RSA_LENGTH),
        (pem(other_curve.public_key()), KeyFault.KIND),
        ('{"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}', KeyFault.KIND),
        ('{"kty": "OKP", "crv": "X25519", "x": "AA"}', KeyFault.KIND),
        ('{"kty": ["EC"]}', KeyFault.KIND),
        ('{"keys": []}', KeyFault.NONE),
        (jwks(new_pair(kid="a"), new_pair(kid="a")), KeyFault.REPEATED),
    ):
        assert fault_of(text) is fault
    for bits in (2048, 4096):
        assert len(read_client_keys(rsa_jwk(bits))) == 1


@each_algorithm
def test_a_key_that_is_sent_comes_with_its_thumbprint(algorithm: str) -> None:
    pair = new_pair(algorithm)
    key, thumbprint = read_public_jwk(pair.public_jwk)
    (registered,) = read_client_keys(json.dumps({**pair.public_jwk, "kid": None}))
    assert key == load_key(registered.jwk)
    assert thumbprint == registered.kid
    with pytest.raises(UnusableKey) as refused:
        read_public_jwk({**pair.public_jwk, "d": "AQAB"})
    assert refused.value.fault is KeyFault.PRIVATE


def test_a_key_may_name_eddsa_by_its_new_name_and_is_stored_by_the_old_one() -> None:
    public = new_pair("EdDSA").public_jwk
    of_each_name = [
        read_client_keys(json.dumps(public | {"alg": name})) for name in ("EdDSA", "Ed25519")
    ]
    assert of_each_name[0] == of_each_name[1]
    other = new_pair("ES256").public_jwk | {"alg": "Ed25519"}
    assert fault_of(json.dumps(other)) is KeyFault.ALGORITHM


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"alg": "RS256"}, KeyFault.ALGORITHM),
        ({"alg": None}, KeyFault.ALGORITHM),
        ({"use": "enc"}, KeyFault.USE),
        ({"key_ops": ["encrypt"]}, KeyFault.USE),
        *(({"kid": kid}, KeyFault.KID) for kid in ("", "two words", "k" * 65, 7)),
        ({"n": 5}, KeyFault.UNREADABLE),
    ],
)
def test_other_members_decide_too(members: dict[str, Any], fault: KeyFault) -> None:
    assert fault_of(json.dumps(public_ps256() | members)) is fault


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "7", '{"keys": {}}', '{"keys": [1]}', "ci_live_x", "[" * 10_000),
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        '{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}',  # not on the curve
        '{"kty": "EC", "crv": "P-256"}',
        '{"kty": "OKP", "crv": "Ed25519", "x": "AA"}',
        '{"kty": "OKP", "crv": "Ed25519", "x": "é"}',
    ],
)
def test_what_is_no_key_is_unreadable(text: str) -> None:
    assert fault_of(text) is KeyFault.UNREADABLE


def test_a_character_that_base64url_does_not_have_is_not_left_out() -> None:
    public = new_pair("EdDSA").public_jwk
    assert fault_of(json.dumps(public | {"x": public["x"] + "!!!!"})) is KeyFault.UNREADABLE


MEMBERS = st.sampled_from(["keys", "kty", "crv", "x", "y", "n", "e", "kid", "alg"])
VALUES = st.none() | st.integers() | st.text() | st.sampled_from(["EC", "RSA", "P-256", "AQAB"])


# In a new checkout the first text takes seconds: Hypothesis lists the characters of Unicode.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(MEMBERS, VALUES | st.lists(st.dictionaries(MEMBERS, VALUES), max_size=2)))
def test_no_json_is_more_than_refused(value: Any) -> None:
    with pytest.raises(UnusableKey):
        read_client_keys(json.dumps(value))


PRIME = 2**255 - 19
OF_ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")


@pytest.mark.parametrize("sign", [0, 2**255], ids=["even", "odd"])
@pytest.mark.parametrize(
    "y",
    [0, 1, PRIME - 1, PRIME, PRIME + 1, *(n := int.from_bytes(OF_ORDER_8, "little"), PRIME - n)],
    ids=["0", "1", "-1", "p", "p+1", "order 8", "other order 8"],
)
def test_a_key_whose_signatures_can_be_made_without_it_is_refused(y: int, sign: int) -> None:
    """The points of small order (RFC 8032 section 8.5): a proof by one proves nothing."""
    point = (y + sign).to_bytes(32, "little")
    x = base64.urlsafe_b64encode(point).rstrip(b"=").decode()
    assert fault_of(json.dumps({"kty": "OKP", "crv": "Ed25519", "x": x})) is KeyFault.UNREADABLE
    assert fault_of(pem(Ed25519PublicKey.from_public_bytes(point))) is KeyFault.UNREADABLE
    with pytest.raises(UnusableKey):
        read_public_jwk({"kty": "OKP", "crv": "Ed25519", "x": x})
