"""A proof to the character: right but for what a test changes, in JSON."""

from datetime import UTC, datetime

from tests.client_auth.signer import RIGHT, Signer, raw_object

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def moment(seconds: float, at: datetime = AT) -> bytes:
    """So many seconds after that moment, as a claim."""
    return repr(at.timestamp() + seconds).encode()


def signed_proof(
    address: str,
    *,
    method: str = "POST",
    at: datetime = AT,
    signer: Signer = RIGHT,
    jwk: bytes | None = None,
    alg: bytes = b'"EdDSA"',
    **claims: bytes,
) -> str:
    header = {"typ": b'"dpop+jwt"', "alg": alg, "jwk": signer.jwk.encode() if jwk is None else jwk}
    right = {
        "jti": b'"x"',
        "htm": f'"{method}"'.encode(),
        "htu": f'"{address}"'.encode(),
        "iat": moment(0, at),
    }
    return signer.sign(raw_object(header), raw_object(right | claims)).decode()
