"""Whatever a client sends as its proof, it is refused with a fault that has a name, or it is right.

Hypothesis makes assertions, DPoP proofs and certificates that are almost right. Pure.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from django.conf import settings
from hypothesis import example, given
from hypothesis import strategies as st

from taxpayers.rules import Refused
from tests.certificates.certificate_erp import authority, certificate, rfc9440
from tests.client_auth.signer import OTHER, RIGHT, raw_object
from tokens.client_auth.assertion import JWT_BEARER, SentAssertion, read_assertion
from tokens.client_auth.certificate import CertificateHeaders, read_certificate
from tokens.dpop.proof import InvalidProof, read_proof, verified_thumbprint

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
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
