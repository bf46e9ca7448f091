"""A key that signs any header and any claims, also such as no library would write."""

import base64
import hashlib
import json
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def raw_object(members: dict[str, bytes]) -> bytes:
    """JSON whose values are any bytes."""
    return b"{" + b",".join(b'"%b":%b' % (k.encode(), v) for k, v in members.items()) + b"}"


class Signer:
    """An Ed25519 key; the same one for the same name."""

    def __init__(self, name: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
        x = encode(self._key.public_key().public_bytes_raw()).decode()
        self.jwk = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"))
        self.thumbprint = encode(hashlib.sha256(self.jwk.encode()).digest()).decode()  # RFC 7638

    def sign(self, header: bytes, claims: bytes) -> bytes:
        signed = encode(header) + b"." + encode(claims)
        return signed + b"." + encode(self._key.sign(signed))


RIGHT, OTHER = Signer("right"), Signer("other")
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def moment(seconds: float, at: datetime = AT) -> bytes:
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
