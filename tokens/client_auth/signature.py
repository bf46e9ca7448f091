"""A signature that a client made with its key: ES256, PS256 or EdDSA (RFC 7518, RFC 8037). Pure."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from taxpayers.client_keys import PublicKey

_COORDINATE_BYTES = 32
_ES256_BYTES = 2 * _COORDINATE_BYTES
_SHA256 = SHA256()
_ECDSA = ECDSA(_SHA256)
_PSS = PSS(MGF1(_SHA256), salt_length=32)  # RFC 7518 section 3.5


def is_signature(key: PublicKey, signature: bytes, signed: bytes) -> bool:
    """Whether the owner of the key made it, with the one algorithm of this kind of key."""
    try:
        if isinstance(key, EllipticCurvePublicKey):
            key.verify(_der(signature), signed, _ECDSA)
        elif isinstance(key, Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, _PSS, _SHA256)
    except InvalidSignature:
        return False
    return True


def _der(signature: bytes) -> bytes:
    if len(signature) != _ES256_BYTES:
        raise InvalidSignature
    r, s = signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:]
    return encode_dss_signature(int.from_bytes(r), int.from_bytes(s))
