"""The bounds of a proof to the character and to the moment, and hostile values in it. Pure."""

from datetime import UTC, datetime
from typing import Any

import pytest

from proofs.fuzz.signed.signer import RIGHT, raw_object
from tokens.dpop.proof import InvalidProof, ProofFault, read_proof, verified_thumbprint
from tokens.dpop.target import is_same_target

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ADDRESS = "https://id.example.org/connect/token"


RIGHT_JWK = RIGHT.jwk.encode()


def signed(jwk: bytes = RIGHT_JWK, alg: bytes = b'"EdDSA"', **claims: bytes) -> str:
    """A right proof but for these values, in JSON."""
    header = {"typ": b'"dpop+jwt"', "alg": alg, "jwk": jwk}
    right = {"jti": b'"x"', "htm": b'"POST"', "htu": f'"{ADDRESS}"'.encode(), "iat": _moment(0)}
    return RIGHT.sign(raw_object(header), raw_object(right | claims)).decode()


def _moment(seconds: float) -> bytes:
    """So many seconds after AT, as a claim."""
    return repr(AT.timestamp() + seconds).encode()


def thumbprint_of(proof: str) -> str:
    return verified_thumbprint(read_proof(proof, method="POST", address=ADDRESS, at=AT))


def fault_of(proof: str) -> str:
    with pytest.raises(InvalidProof) as invalid:
        thumbprint_of(proof)
    assert str(invalid.value) == invalid.value.fault  # so a log that shows it says what it was
    return invalid.value.fault


def test_a_proof_has_at_most_4096_characters() -> None:
    longest = signed() + "A" * (4096 - len(signed()))
    assert fault_of(longest) == ProofFault.SIGNATURE  # it was read
    assert fault_of(longest + "A") == ProofFault.TOO_LONG


def test_its_jti_has_1_to_128_characters() -> None:
    assert thumbprint_of(signed(jti=f'"{"j" * 128}"'.encode())) == RIGHT.thumbprint
    for jti in (b'""', f'"{"j" * 129}"'.encode()):
        assert fault_of(signed(jti=jti)) == ProofFault.JTI


@pytest.mark.parametrize("mark", ["!", "\n", "=", "+/", " ", "é"])
def test_characters_that_no_jwt_has_are_not_skipped(mark: str) -> None:
    header, claims, signature = signed().split(".")
    for wrong in (
        f"{header[:8]}{mark}{header[8:]}.{claims}.{signature}",
        f"{header}.{claims}.{signature[:8]}{mark}{signature[8:]}",
    ):
        assert fault_of(wrong) in (ProofFault.UNREADABLE, ProofFault.SIGNATURE)
    assert fault_of(f"{header}.{claims}.{signature[:8]}!{signature[8:]}") == ProofFault.UNREADABLE


@pytest.mark.parametrize("algorithm", [b'"none"', b'"HS256"', b'"ES512"', b'"eddsa"', b'""'])
def test_another_algorithm_is_refused_before_a_key_is_read(algorithm: bytes) -> None:
    assert fault_of(signed(jwk=b"null", alg=algorithm)) == ProofFault.ALGORITHM


@pytest.mark.parametrize(
    ("seconds", "fault"),
    [
        (-60, ""),
        (-60.01, ProofFault.TOO_OLD),
        (10, ""),
        (10.01, ProofFault.NOT_YET_VALID),
    ],
)
def test_a_proof_is_accepted_for_60_seconds_and_10_before(seconds: float, fault: str) -> None:
    proof = signed(iat=_moment(seconds))
    if fault:
        assert fault_of(proof) == fault
    else:
        assert thumbprint_of(proof) == RIGHT.thumbprint


def test_its_use_is_stored_until_it_could_not_be_accepted_any_more() -> None:
    proof = read_proof(signed(iat=_moment(7)), method="POST", address=ADDRESS, at=AT)
    assert (proof.last_moment - AT).total_seconds() == 67


def test_each_client_key_and_jti_has_its_own_use() -> None:
    first, other = (
        read_proof(signed(jti=jti), method="POST", address=ADDRESS, at=AT)
        for jti in (b'"x"', b'"y"')
    )
    uses = [("c", "k"), ("d", "k"), ("c", "l")]
    ids = {first.use_id(*use) for use in uses} | {other.use_id("c", "k")}
    assert len(ids) == 4
    assert first.use_id("c", "k") == first.use_id("c", "k")


@pytest.mark.parametrize(
    "of", ["x", "crv", "more"], ids=["in a number", "in the curve", "in another member"]
)
def test_json_however_deep_is_refused_and_nothing_else_happens(of: str) -> None:
    """Somewhere a parser comes to its end: also where that is only at the second reading."""
    for depth in range(1, 1_100):
        jwk = {"kty": b'"OKP"', "crv": b'"Ed25519"', "x": b'""'} | {of: _nested(depth)}
        assert fault_of(signed(raw_object(jwk))) in (ProofFault.KEY, ProofFault.UNREADABLE)


@pytest.mark.parametrize("member", ["kty", "crv", "x", "more"])
def test_a_key_whose_text_is_not_utf_8_is_refused(member: str) -> None:
    jwk = {"kty": b'"OKP"', "crv": b'"Ed25519"', "x": b'""'} | {member: b'"\xff"'}
    assert fault_of(signed(raw_object(jwk))) in (ProofFault.KEY, ProofFault.UNREADABLE)


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    "htu",
    [
        *("https://id.example.org//[x", "https://id.example.org//x@[::1", "https:///[", "//["),
        *("https://id.example.org//\N{ACCOUNT OF}", "https://\N{ACCOUNT OF}/connect/token"),
        *("https://id.example.org:٤٤٣x/", "https://id.example.org:99999/connect/token"),
    ],
)
def test_what_looks_like_a_broken_address_is_another_one(htu: str) -> None:
    assert not is_same_target(htu, ADDRESS)
    claims: dict[str, Any] = {"htu": f'"{htu}"'.encode()}
    assert fault_of(signed(**claims)) == ProofFault.TARGET
