"""Which signature is that of a key, and from when until when an assertion is accepted. Pure."""

import json
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from django.conf import settings
from hypothesis import example, given, strategies as st
from msgspec.structs import replace

from taxpayers.client_keys import load_key
from taxpayers.facts.values import Facts
from taxpayers.rules import Refused
from tests.certificates.certificate_erp import authority, certificate, rfc9440
from tests.client_auth.key_erp import KeyPair, new_pair
from tests.client_auth.signer import OTHER, RIGHT, raw_object
from tests.endpoint.test_rules import AT, CLIENT, SECRET
from tokens.client_auth.assertion import (
    JWT_BEARER,
    AssertionFault,
    ClientAssertion,
    SentAssertion,
    read_assertion,
)
from tokens.client_auth.certificate import CertificateHeaders, read_certificate
from tokens.client_auth.compact_jws import is_signature
from tokens.client_auth.private_key_jwt import _stand_in, authenticate, last_moment
from tokens.dpop.proof import InvalidProof, read_proof, verified_thumbprint

ALGORITHMS = ("ES256", "PS256", "EdDSA")
SIGNED = b"header.claims"
PSS_OF_JWA = PSS(MGF1(SHA256()), salt_length=32)


@cache
def pair(algorithm: str, number: int = 0) -> KeyPair:
    return new_pair(algorithm, f"{algorithm}-{number}")


def made_by(key: KeyPair) -> bytes:
    """As RFC 7518 and RFC 8037 say; by the library, not by ours."""
    if key.algorithm == "EdDSA":
        return bytes(key.private.sign(SIGNED))
    if key.algorithm == "PS256":
        return bytes(key.private.sign(SIGNED, PSS_OF_JWA, SHA256()))
    r, s = decode_dss_signature(key.private.sign(SIGNED, ECDSA(SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def jwk(key: KeyPair) -> str:
    return json.dumps(key.public_jwk)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_signature_is_that_of_its_key_and_text(algorithm: str) -> None:
    key, made = load_key(jwk(pair(algorithm))), made_by(pair(algorithm))
    assert is_signature(key, made, SIGNED)
    assert not is_signature(key, made, SIGNED + b"x")
    assert not is_signature(load_key(jwk(pair(algorithm, 1))), made, SIGNED)
    for wrong in (b"", made[:-1], made + b"\0", b"\0" * len(made), b"\xff" * len(made), made[::-1]):
        assert not is_signature(key, wrong, SIGNED)


def test_es256_is_two_numbers_of_32_bytes_and_no_der() -> None:
    key = pair("ES256")
    assert not is_signature(load_key(jwk(key)), key.private.sign(SIGNED, ECDSA(SHA256())), SIGNED)
    made = made_by(key)
    assert not is_signature(load_key(jwk(key)), made[:32] + b"\0" + made[32:], SIGNED)


@pytest.mark.parametrize(
    ("padding", "hash_"),
    [
        (PSS(MGF1(SHA256()), salt_length=31), SHA256()),
        (PSS(MGF1(SHA256()), salt_length=0), SHA256()),
        (PSS(MGF1(SHA384()), salt_length=32), SHA256()),
        (PSS(MGF1(SHA384()), salt_length=48), SHA384()),
        (PKCS1v15(), SHA256()),
    ],
)
def test_ps256_has_one_padding_and_one_hash(padding: Any, hash_: Any) -> None:
    key = pair("PS256")
    assert not is_signature(load_key(jwk(key)), key.private.sign(SIGNED, padding, hash_), SIGNED)


# --- Who is the client ----------------------------------------------------------------------------


def facts_of(key: KeyPair) -> Facts:
    return Facts(replace(CLIENT, client_id="ci_live_1"), replace(SECRET, public_jwk=jwk(key)))


def assertion(key: KeyPair, **changes: Any) -> ClientAssertion:
    right = ClientAssertion(
        client_id="ci_live_1",
        kid=key.kid,
        algorithm=key.algorithm,
        jti="x",
        expires=AT.timestamp() + 60,
        valid_from=0,
        signed=SIGNED,
        signature=made_by(key),
    )
    return replace(right, **changes)


def reason_of(sent: ClientAssertion, facts: Facts | None) -> str:
    with pytest.raises(Refused) as refused:
        authenticate(sent, facts, AT)
    assert refused.value.parameter == "client_assertion"
    return f"{refused.value.reason} {refused.value.detail}".strip()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_client_is_who_signs_with_its_key(algorithm: str) -> None:
    key, other = pair(algorithm), pair(algorithm, 1)
    client = authenticate(assertion(key), facts_of(key), AT)
    assert (client.client_id, client.method) == ("ci_live_1", "private_key_jwt")
    for sent, facts in (
        (assertion(key), None),
        (assertion(key), facts_of(other)),
        (assertion(other), facts_of(key)),
        (assertion(key, signed=b"another"), facts_of(key)),
        (assertion(key, signature=b""), facts_of(key)),
        (assertion(key, signature=b"\xff" * 256), facts_of(key)),
        (assertion(key, signature=b"\xff" * 9_000), None),
    ):
        assert reason_of(sent, facts) == "invalid_credentials"


@pytest.mark.parametrize("named", ALGORITHMS)
@pytest.mark.parametrize("used", ALGORITHMS)
def test_the_algorithm_is_that_of_the_key(used: str, named: str) -> None:
    key = pair(used)
    sent = assertion(key, algorithm=named)
    if named == used:
        assert authenticate(sent, facts_of(key), AT).client_id == "ci_live_1"
    else:
        assert reason_of(sent, facts_of(key)) == "invalid_credentials"


@pytest.mark.parametrize(
    ("signature_bytes", "bits"),
    [(0, 2048), (255, 2048), (256, 2048), (257, 2056), (512, 4096), (513, 2048), (9_000, 2048)],
)
def test_a_stand_in_costs_as_much_as_a_registered_key_and_never_more(
    signature_bytes: int, bits: int
) -> None:
    stand_in: Any = _stand_in("PS256", signature_bytes)
    assert stand_in.public_numbers().n == 2**bits - 1  # no signature is larger


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"expires": -10.0}, ""),
        ({"expires": -10.01}, AssertionFault.EXPIRED),
        ({"expires": 310.0}, ""),
        ({"expires": 310.01}, AssertionFault.TOO_FAR_AHEAD),
        ({"valid_from": 10.0}, ""),
        ({"valid_from": 10.01}, AssertionFault.NOT_YET_VALID),
    ],
)
def test_clocks_may_differ_by_10_seconds(changes: dict[str, float], fault: str) -> None:
    moments = {name: AT.timestamp() + seconds for name, seconds in changes.items()}
    sent, facts = assertion(pair("EdDSA"), **moments), facts_of(pair("EdDSA"))
    if fault:
        assert reason_of(sent, facts) == f"malformed_credentials {fault}"
    else:
        assert authenticate(sent, facts, AT).client_id == "ci_live_1"


def test_its_use_is_stored_until_it_cannot_be_accepted_any_more() -> None:
    assert last_moment(assertion(pair("EdDSA"))) == AT + timedelta(seconds=70)


ADDRESS = f"{settings.AUTH_URL}/connect/token"
ASSERTION: tuple[dict[str, bytes], dict[str, bytes]] = (
    {"alg": b'"EdDSA"', "kid": b'"k"', "typ": b'"JWT"'},
    {"iss": b'"c"', "sub": b'"c"', "aud": b'"https://x"', "jti": b'"x"', "exp": b"2000"},
)
PROOF: tuple[dict[str, bytes], dict[str, bytes]] = (
    {"typ": b'"dpop+jwt"', "alg": b'"EdDSA"', "jwk": RIGHT.jwk.encode()},
    {
        "jti": b'"x"',
        "htm": b'"POST"',
        "htu": b'"%b"' % ADDRESS.encode(),
        "iat": b"%d" % AT.timestamp(),
    },
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=150)
JSON = st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text(), each))
DEEP = st.integers(2, 1_100).map(lambda depth: b"[" * depth + b"]" * depth)
# JSON of any shape, which names also what no encoding has; bytes; numbers and nesting without end.
VALUES = (
    JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=20)
    | st.sampled_from((b'"\\ud800"', b'"\\u0000"', b"1e999", b"-1e308", b"9" * 400, b'"EdDSA"'))
    | DEEP
    | DEEP.map(lambda nested: b'{"kty":"OKP","crv":"Ed25519","x":%b}' % nested)
    | st.sampled_from((b"ES256", b"PS256", b"RS256", b"HS256", b"none")).map(lambda a: b'"%b"' % a)
)
NAMES = (*ASSERTION[0], *ASSERTION[1], *PROOF[0], *PROOF[1], "crit", "nbf", "ath", "x")


@st.composite
def almost(draw: Any, right: tuple[dict[str, bytes], dict[str, bytes]]) -> tuple[str, bool]:
    """What is sent, and whether its signature is that of the key that it should be of."""
    parts = [dict(part) for part in right]
    for name, value in draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2)).items():
        draw(st.sampled_from(parts))[name] = value
    signer = draw(st.sampled_from((RIGHT, RIGHT, OTHER)))
    whole = signer.sign(*map(raw_object, parts)).decode()
    if not draw(st.booleans()):
        return whole, signer is RIGHT
    at, cut = draw(st.integers(0, len(whole))), draw(st.integers(0, 5))
    changed = whole[:at] + draw(st.text(max_size=3)) + whole[at + cut :]
    # The last character of a signature has bits that mean nothing.
    return changed, signer is RIGHT and changed.strip().startswith(whole[:-1])


@given(almost(ASSERTION))
def test_an_assertion_is_read_or_refused(sent: tuple[str, bool]) -> None:
    assertion, _is_right = sent
    try:
        found = read_assertion(SentAssertion("", assertion, JWT_BEARER), "https://x")
    except Refused:
        return
    assert found.algorithm in ("EdDSA", "ES256", "PS256")
    # What is verified afterwards is what was sent.
    assert found.signed == assertion.encode().rpartition(b".")[0]


@given(almost(PROOF))
@example((RIGHT.sign(*map(raw_object, PROOF)).decode(), True))
def test_a_proof_is_refused_or_signed_by_its_own_key(sent: tuple[str, bool]) -> None:
    text, is_right = sent
    try:
        proof = read_proof(text, method="POST", address=ADDRESS, at=AT)
        thumbprint = verified_thumbprint(proof)
    except InvalidProof:
        assert text != RIGHT.sign(*map(raw_object, PROOF)).decode()
    else:
        assert (is_right, thumbprint) == (True, RIGHT.thumbprint)


NAMED = (x509.DNSName("erp.example.org"), x509.RegisteredID(x509.ObjectIdentifier("1.2.3")))
DER = (certificate().der, authority().issue("", *NAMED).der)
BYTES = st.sampled_from((0, 1, 2, 0x30, 0x80, 0x82, 0xA3, 0xA5, 0xFF)).map(lambda n: bytes([n]))


@given(
    st.sampled_from(DER),
    st.lists(st.tuples(st.integers(0, 10_000), BYTES | st.binary(max_size=2), st.integers(0, 2))),
)
@example(DER[0], [])
def test_a_certificate_is_read_or_refused(der: bytes, changes: Any) -> None:
    changed = der
    for place, new, cut in changes:
        at = place % (len(changed) + 1)
        changed = changed[:at] + new + changed[at + cut :]
    client_cert = rfc9440(type("Changed", (), {"der": changed})())["Client-Cert"]
    sent = CertificateHeaders(client_cert=client_cert, verified="SUCCESS")
    try:
        read_certificate(sent)
    except Refused:
        assert changed != der
    else:
        with pytest.raises(Refused):
            read_certificate(CertificateHeaders(client_cert=client_cert, verified="NONE"))
