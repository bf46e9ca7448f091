"""A JWT that a client has signed, an assertion or a DPoP proof: its parts and signature. Pure.

RFC 7515; by ES256, PS256 or EdDSA (RFC 7518, RFC 8037). The caller decides who may sign with what.
"""

import re
from binascii import a2b_base64
from typing import Any, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from taxpayers.client_keys import PublicKey

Part = TypeVar("Part", bound=msgspec.Struct)

_PARTS = 3
_BASE64URL = re.compile("[A-Za-z0-9_-]*")  # RFC 7515 section 2
_STANDARD_ALPHABET = bytes.maketrans(b"-_", b"+/")


class UnreadableJws(ValueError):
    """It does not have three parts, or one of them is not what it must be."""


class Header(msgspec.Struct):
    """What is read of the header of an assertion or a ticket."""

    alg: str
    kid: str = ""
    typ: str = ""
    crit: Any = None


def parts_of(text: str) -> tuple[str, str, str]:
    """Header, payload and signature, still encoded. Raises UnreadableJws."""
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise UnreadableJws
    return parts[0], parts[1], parts[2]


def read_json(part: str, kind: type[Part]) -> Part:
    """A header or payload of this shape. Raises UnreadableJws."""
    try:
        return msgspec.json.decode(read_bytes(part), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableJws from None


def read_bytes(part: str) -> bytes:
    """Raises UnreadableJws."""
    if not _BASE64URL.fullmatch(part):  # Python's decoder also takes base64 and padding
        raise UnreadableJws
    try:
        # It ignores what is more than needed. (The module base64 takes as long again to call it.)
        return a2b_base64(part.encode().translate(_STANDARD_ALPHABET) + b"==")
    except ValueError:
        raise UnreadableJws from None


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
