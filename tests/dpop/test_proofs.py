"""The checks of a proof, as RFC 9449 section 4.3 numbers them, to the character. Pure."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import jwt
import pytest
from django.conf import settings
from joserfc.jwk import JWKRegistry

from einvoicing_tokens.dpop.target import comparable
from tests.client_auth.key_erp import new_pair, signed_as
from tests.client_auth.signer import AT, moment, raw_object, signed_proof
from tests.dpop.dpop_erp import DpopErp
from tests.support.erp import Erp
from tokens.dpop import proof as service_proof
from tokens.dpop.nonce import WINDOW, Nonces
from tokens.dpop.proof import InvalidProof, Proof, ProofFault, read_proof, verified_thumbprint

ADDRESS = f"{settings.AUTH_URL}/connect/token"
each_algorithm = pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])


@pytest.fixture
def erp() -> DpopErp:
    return client()


def client(algorithm: str = "ES256") -> DpopErp:
    return DpopErp(Erp("ci_test_1", ""), new_pair(algorithm))


def read(sent: str, at: datetime | None = None) -> Proof:
    now = at or datetime.fromtimestamp(time.time(), UTC)
    found = read_proof(sent, method="POST", address=ADDRESS, at=now)
    verified_thumbprint(found)
    return found


def fault_of(sent: str, at: datetime | None = None) -> str:
    with pytest.raises(InvalidProof) as invalid:
        read(sent, at)
    assert str(invalid.value) == invalid.value.fault  # so a log that shows it says what it was
    return invalid.value.fault


signed = partial(signed_proof, ADDRESS)


def encoded(value: Any) -> str:
    return jwt.utils.base64url_encode(json.dumps(value).encode()).decode()


@each_algorithm
def test_what_is_right_is_accepted(algorithm: str) -> None:
    erp = client(algorithm)
    for proof in (erp.proof(), f" {erp.proof()} ", erp.proof(unknown="claim", ath="x", nbf=9e9)):
        found = read(proof)
        assert found.algorithm == algorithm
        # RFC 7638, by another library.
        assert verified_thumbprint(found) == JWKRegistry.import_key(erp.jwk).thumbprint()


def test_1_more_than_one_header(erp: DpopErp) -> None:
    for between in (",", ", "):
        assert fault_of(f"{erp.proof()}{between}{erp.proof()}") == ProofFault.REPEATED


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "..", "a.b.c", "a.b.c.d.e", "{}.{}.{}", "ew.ew.ew"),
        *("bnVsbA.bnVsbA.bnVsbA", "W10.W10.W10", f"{'W1' * 500}.{'W1' * 500}.x"),
    ],
)
def test_2_no_jwt(text: str) -> None:
    assert fault_of(text) == ProofFault.UNREADABLE


def test_2_it_has_at_most_4096_characters() -> None:
    longest = signed() + "A" * (4096 - len(signed()))
    assert fault_of(longest, AT) == ProofFault.SIGNATURE  # it was read
    assert fault_of(longest + "A", AT) == ProofFault.TOO_LONG


@pytest.mark.parametrize(
    "claims", [{"jti": 7}, {"htm": ["POST"]}, {"htu": {}}, {"iat": "now"}, {"ath": 1}, {"nonce": 7}]
)
def test_2_values_of_another_type(erp: DpopErp, claims: dict[str, Any]) -> None:
    header, _payload, signature = erp.proof().split(".")
    wrong = f"{header}.{encoded(erp.claims() | claims)}.{signature}"
    assert fault_of(wrong) == ProofFault.UNREADABLE


@pytest.mark.parametrize("mark", ["!", "\n", "=", "+/", " ", "é"])
def test_2_characters_that_no_jwt_has_are_not_skipped(mark: str) -> None:
    header, claims, signature = signed().split(".")
    for wrong in (
        f"{header[:8]}{mark}{header[8:]}.{claims}.{signature}",
        f"{header}.{claims}.{signature[:8]}{mark}{signature[8:]}",
    ):
        assert fault_of(wrong, AT) in (ProofFault.UNREADABLE, ProofFault.SIGNATURE)
    assert (
        fault_of(f"{header}.{claims}.{signature[:8]}!{signature[8:]}", AT) == ProofFault.UNREADABLE
    )


@pytest.mark.parametrize(
    ("claim", "fault"),
    [
        ("jti", ProofFault.JTI),
        ("htm", ProofFault.METHOD),
        ("htu", ProofFault.TARGET),
        ("iat", ProofFault.ISSUED_AT),
    ],
)
def test_3_a_claim_is_missing(erp: DpopErp, claim: str, fault: ProofFault) -> None:
    for value in (None, "" if claim != "iat" else None):
        changed: dict[str, Any] = {claim: value}
        assert fault_of(erp.proof(**changed)) == fault


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "DPOP+JWT", "application/dpop+jwt", "", None])
def test_4_another_type(erp: DpopErp, typ: Any) -> None:
    assert fault_of(erp.proof(header={"typ": typ})) == ProofFault.TYPE


@pytest.mark.parametrize("alg", [b'"none"', b'"HS256"', b'"ES512"', b'"RS256"', b'"eddsa"', b'""'])
def test_5_another_algorithm_is_refused_before_a_key_is_read(alg: bytes) -> None:
    assert fault_of(signed(jwk=b"null", alg=alg), AT) == ProofFault.ALGORITHM


def test_5_the_algorithm_is_that_of_its_kind_of_key_and_eddsa_has_two_names(erp: DpopErp) -> None:
    other = client("EdDSA")
    assert fault_of(erp.proof(pair=other.pair)) == ProofFault.ALGORITHM  # jwk is an EC key
    # RFC 9864: oauth4webapi, openid-client and jose write `Ed25519`.
    assert read(signed_as("Ed25519", other.proof(), other.pair)).algorithm == "EdDSA"


def test_5_crit_is_refused(erp: DpopErp) -> None:
    header, payload, signature = erp.proof().split(".")
    members = json.loads(jwt.utils.base64url_decode(header)) | {"crit": ["exp"], "exp": 1}
    assert fault_of(f"{encoded(members)}.{payload}.{signature}") == ProofFault.CRITICAL


@each_algorithm
def test_6_the_signature_is_that_of_the_key_in_the_header(algorithm: str) -> None:
    erp = client(algorithm)
    header, payload, signature = erp.proof().split(".")
    for wrong in (
        erp.proof(pair=new_pair(algorithm)),
        *(f"{header}.{payload}.{each}" for each in (signature[:-8] + signature[:8], "")),
        f"{header}.{encoded(erp.claims(jti='another'))}.{signature}",
    ):
        assert fault_of(wrong) == ProofFault.SIGNATURE


@each_algorithm
def test_7_a_private_key(algorithm: str) -> None:
    erp = client(algorithm)
    private = {k: v for k, v in erp.pair.private_jwk.items() if k != "kid"}
    assert "d" in private
    assert fault_of(erp.proof(header={"jwk": private})) == ProofFault.KEY


SYMMETRIC = {"kty": "oct", "k": base64.b64encode(b"k" * 32).decode()}
OFF_THE_CURVE = {**new_pair().public_jwk, "x": "AAAA"}


@pytest.mark.parametrize("jwk", [None, "key", [{}], {}, SYMMETRIC, OFF_THE_CURVE, {"kty": ["EC"]}])
def test_7_what_is_no_public_key_that_could_be_registered(jwk: Any, erp: DpopErp) -> None:
    """Each of them: tests/client_auth/test_client_keys.py."""
    assert fault_of(erp.proof(header={"jwk": jwk})) == ProofFault.KEY


@pytest.mark.parametrize("of", ["x", "crv", "more"])
def test_7_json_however_deep_is_refused_and_nothing_else_happens(of: str) -> None:
    """Somewhere a parser comes to its end: also where that is only at the second reading."""
    for depth in (*range(1, 100), *range(100, 900, 50), *range(900, 1_100)):
        nested = b"[" * depth + b"]" * depth
        jwk = {"kty": b'"OKP"', "crv": b'"Ed25519"', "x": b'""'} | {of: nested}
        assert fault_of(signed(jwk=raw_object(jwk)), AT) in (ProofFault.KEY, ProofFault.UNREADABLE)


@pytest.mark.parametrize("member", ["kty", "crv", "x", "more"])
def test_7_a_key_whose_text_is_not_utf_8_is_refused(member: str) -> None:
    jwk = {"kty": b'"OKP"', "crv": b'"Ed25519"', "x": b'""'} | {member: b'"\xff"'}
    assert fault_of(signed(jwk=raw_object(jwk)), AT) in (ProofFault.KEY, ProofFault.UNREADABLE)


@pytest.mark.parametrize("htu", ["http://testserver/connect/token", f"{ADDRESS}/", "//["])
def test_9_another_address(htu: str) -> None:
    """Each other form: below."""
    assert fault_of(signed(htu=f'"{htu}"'.encode()), AT) == ProofFault.TARGET


@pytest.mark.parametrize("seconds", [-60.01, -300, -1e300])
def test_11_too_old(seconds: float) -> None:
    assert fault_of(signed(iat=moment(seconds)), AT) == ProofFault.TOO_OLD


@pytest.mark.parametrize("seconds", [10.01, 60, 1e300])
def test_11_in_the_future(seconds: float) -> None:
    assert fault_of(signed(iat=moment(seconds)), AT) == ProofFault.NOT_YET_VALID


@pytest.mark.parametrize("seconds", [-60, -1, 0.5, 10])
def test_11_clocks_differ_a_little(seconds: float) -> None:
    assert read(signed(iat=moment(seconds)), AT).jti


def test_its_use_is_stored_until_it_could_not_be_accepted_any_more() -> None:
    assert (read(signed(iat=moment(7)), AT).last_moment - AT).total_seconds() == 67


def test_each_client_key_and_jti_has_its_own_use() -> None:
    first, other = (read(signed(jti=jti), AT) for jti in (b'"x"', b'"y"'))
    uses = [("c", "k"), ("d", "k"), ("c", "l")]
    assert len({first.use_id(*use) for use in uses} | {other.use_id("c", "k")}) == 4
    assert first.use_id("c", "k") == first.use_id("c", "k")


NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)  # where a window begins
TICK = timedelta(microseconds=1)
NODE, OTHER_NODE, OTHER_SERVICE = Nonces(b"k"), Nonces(b"k"), Nonces(b"another")


@pytest.mark.parametrize(
    ("later", "is_accepted"),
    [
        (timedelta(0), True),
        (WINDOW - TICK, True),
        (WINDOW, True),
        (2 * WINDOW - TICK, True),
        (2 * WINDOW, False),
        (24 * WINDOW, False),
        (-TICK, True),  # another node's idea of the time is a little behind
        (-WINDOW, True),
        (-WINDOW - TICK, False),
    ],
)
def test_it_is_accepted_for_one_to_two_windows(later: timedelta, is_accepted: bool) -> None:
    assert OTHER_NODE.is_accepted(NODE.current(NOON), NOON + later) is is_accepted


def test_within_a_window_it_is_the_same_and_then_another_one() -> None:
    assert NODE.current(NOON) == NODE.current(NOON + WINDOW - TICK) != NODE.current(NOON + WINDOW)


def test_without_the_key_none_can_be_made() -> None:
    assert not NODE.is_accepted(OTHER_SERVICE.current(NOON), NOON)


@pytest.mark.parametrize("nonce", ["", "x", "é", "\ud800", "A" * 24, "A" * 4000])
def test_any_other_text_is_not_accepted(nonce: str) -> None:
    assert not NODE.is_accepted(nonce, NOON)


TARGET = "https://id.example.org/connect/token"
WRITTEN = "https://h/taxpayers/C1:R1(\u00e9)"  # a library may escape it


def is_same_target(one: str, other: str) -> bool:
    is_same = service_proof.is_same_target(one, other)
    assert (comparable(one) is not None and comparable(one) == comparable(other)) is is_same
    return is_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TARGET, TARGET),
        ("HTTPS://ID.Example.ORG/connect/token", TARGET),
        ("https://id.example.org:443/connect/token", TARGET),
        ("https://id.example.org/connect/token?a=b#c", TARGET),
        ("https://id.example.org/connect/tok%65n", TARGET),
        ("https://id.example.org/./connect/x/../token", TARGET),
        ("https://id.example.org/%2e/connect/x/%2E%2e/token", TARGET),
        *(("https://h", "https://h/"), ("http://h:80/", "http://h/")),
        ("https://h/%2f", "https://h/%2F"),
        ("https://h/taxpayers/C1%3aR1%28%C3%A9%29", WRITTEN),
        ("https://h/taxpayers/C1%3AR1(%C3%A9)", WRITTEN),
    ],
)
def test_addresses_that_are_the_same(one: str, other: str) -> None:
    assert is_same_target(one, other)
    assert is_same_target(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((text, TARGET) for text in (
            *("http://id.example.org/connect/token", "https://id.example.org:8443/connect/token"),
            "https://id.example.org.evil.example/connect/token",
            "https://id.example.org@evil.example/connect/token",
            "https://evil.example@id.example.org/connect/token",
            *("https://id.example.org/connect/token/", "https://id.example.org//connect/token"),
            *("https://id.example.org/connect%2Ftoken", "/connect/token"),
            "https://id.example.org:x/connect/token",
            *("https://[::1/connect/token", "https://id.example.org//x@[::1", "https:///[", "//["),
            *("https://id.example.org//\N{ACCOUNT OF}", "https://\N{ACCOUNT OF}/connect/token"),
            *("https://id.example.org:٤٤٣x/", "https://id.example.org:99999/connect/token", ""),
        )),
        *(("", ""), ("urn:x", "urn:x")),  # no addresses: not even the same as themselves
        *(("https://h/%2f", "https://h/2F"), ("https://h/a%2Fb", "https://h/a/b")),
        *(("https://h/a%252Fb", "https://h/a%2Fb"), ("https://h/a%253Ab", "https://h/a%3Ab")),
        *(("https://h/a%3Fb", "https://h/a?b"), ("https://h/%2e%2e%2fa", "https://h/a")),
    ],
)  # fmt: skip
def test_addresses_that_differ(one: str, other: str) -> None:
    assert not is_same_target(one, other)
