"""Public keys that clients log in with, as JWK, JWK Set or PEM (RFC 7517, RFC 7638). Pure.

What is stored of a key is made anew from its numbers: public members only, whatever was sent.
"""

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from taxpayers.actions import marked as _

PublicKey = EllipticCurvePublicKey | Ed25519PublicKey | RSAPublicKey

PRIVATE_KEY_JWT = "private_key_jwt"  # the IANA registry's name of the method
# Each kind of key has one algorithm, so no client can choose a weaker one.
ALGORITHMS = {"EC": "ES256", "RSA": "PS256", "OKP": "EdDSA"}
# RFC 9864 gives EdDSA with Ed25519 a name for itself: libraries send either.
_NEW_NAMES = {"Ed25519": "EdDSA"}
ALGORITHM_NAMES = tuple(sorted({*ALGORITHMS.values(), *_NEW_NAMES}))
MAX_KEYS_LENGTH = 20_000
RSA_BITS = range(2048, 4096 + 1)  # a longer one only makes each login slower
_RSA_EXPONENT = 65537
_KID = re.compile(r"[\x21-\x7E]{1,64}")
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"})
_COORDINATE_BYTES = 32
# The points of Ed25519 whose order is 8 or less, by their y: as keys they verify signatures that
# anyone can make (RFC 8032 section 8.5 leaves it to the application). Modulo the prime of the
# field, as y and y + prime are the same point.
_PRIME = 2**255 - 19
_OF_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_WEAK_POINTS = frozenset({0, 1, _PRIME - 1, _OF_ORDER_8, _PRIME - _OF_ORDER_8})


class KeyFault(StrEnum):
    """Why a text is no key that a client can log in with. Marked for translation."""

    UNREADABLE = _(
        "This is no public key. Give a JWK, a JWK Set or a PEM file that begins with"
        " -----BEGIN PUBLIC KEY-----."
    )
    NONE = _("There is no key in it. Give at least one public key.")
    PRIVATE = _(
        "This is a PRIVATE or secret key, and nothing was stored. Who has it can log in: the ERP"
        " system must make a new pair and send its public key only."
    )
    KIND = _("A key must be EC on P-256 (for ES256), RSA (for PS256) or Ed25519 (for EdDSA).")
    RSA_LENGTH = _("An RSA key must have 2048 to 4096 bits.")
    RSA_EXPONENT = _("The public exponent of an RSA key must be 65537.")
    ALGORITHM = _(
        "alg must be ES256 for an EC key, PS256 for an RSA key and EdDSA for Ed25519, or be left"
        " out."
    )
    USE = _("The key is not for signatures: use must be sig, or be left out.")
    KID = _("kid must have 1 to 64 printable characters without blanks.")
    REPEATED = _("Two keys have the same kid. Give each key a different kid.")


class UnusableKey(ValueError):
    """A text in which a key cannot be used. It is never part of the error: it may be private."""

    def __init__(self, fault: KeyFault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A public key; `jwk` is what is stored of it, as JSON."""

    kid: str
    jwk: str


def read_client_keys(text: str) -> tuple[ClientKey, ...]:
    """The public keys in a JWK, a JWK Set or a PEM file. Raises UnusableKey for the first fault."""
    if len(text) > MAX_KEYS_LENGTH:
        raise UnusableKey(KeyFault.UNREADABLE)
    if "-----BEGIN" in text:
        return (_from_pem(text),)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableKey(KeyFault.UNREADABLE) from None
    jwks = found["keys"] if isinstance(found, dict) and "keys" in found else [found]
    if not isinstance(jwks, list) or not all(isinstance(jwk, dict) for jwk in jwks):
        raise UnusableKey(KeyFault.UNREADABLE)
    if any(_PRIVATE_MEMBERS & jwk.keys() for jwk in jwks):
        raise UnusableKey(KeyFault.PRIVATE)
    keys = tuple(map(_from_jwk, jwks))
    if not keys:
        raise UnusableKey(KeyFault.NONE)
    if len({key.kid for key in keys}) < len(keys):
        raise UnusableKey(KeyFault.REPEATED)
    return keys


def algorithm_of(name: str) -> str:
    """The value of ALGORITHMS that this name of an algorithm means; the name itself otherwise."""
    return _NEW_NAMES.get(name, name)


@lru_cache(maxsize=4096)
def load_key(jwk: str) -> PublicKey:
    """The key of a `ClientKey.jwk`: to parse it costs as much as a query. Raises UnusableKey."""
    return _public_key(json.loads(jwk))


def read_public_jwk(jwk: dict[str, Any]) -> tuple[PublicKey, str]:
    """The key that a client sends, and its thumbprint (RFC 7638). Raises UnusableKey."""
    if _PRIVATE_MEMBERS & jwk.keys():
        raise UnusableKey(KeyFault.PRIVATE)
    key = _public_key(jwk)
    return key, thumbprint(public_members(key))


def thumbprint_of(jwk: str) -> str:
    """Of a `ClientKey.jwk` (RFC 7638)."""
    return thumbprint(public_members(load_key(jwk)))


def short_fingerprint(whole: str) -> str:
    """The first 80 bits of a thumbprint, for people to compare: `3F2A 91BC 77DE 0412 9C3B`."""
    digits = base64.urlsafe_b64decode(whole + "=").hex().upper()
    return " ".join(digits[place : place + 4] for place in range(0, 20, 4))


def key_name(kid: str) -> str:
    """What a key is looked up by, where a secret is looked up by its hash; no hash begins so."""
    return f"kid${kid}"


def _from_pem(text: str) -> ClientKey:
    if "PRIVATE KEY" in text:
        raise UnusableKey(KeyFault.PRIVATE)
    try:
        key = load_pem_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey(KeyFault.UNREADABLE) from None
    if not isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey | RSAPublicKey):
        raise UnusableKey(KeyFault.KIND)
    return _client_key(key, None)


def _from_jwk(jwk: dict[str, Any]) -> ClientKey:
    key = _public_key(jwk)
    algorithm = ALGORITHMS[jwk["kty"]]
    named = jwk.get("alg", algorithm)
    if not isinstance(named, str) or algorithm_of(named) != algorithm:
        raise UnusableKey(KeyFault.ALGORITHM)
    if jwk.get("use", "sig") != "sig" or "verify" not in (jwk.get("key_ops") or ["verify"]):
        raise UnusableKey(KeyFault.USE)
    return _client_key(key, jwk.get("kid"))


def _client_key(key: PublicKey, kid: object) -> ClientKey:
    members = public_members(key)
    if kid is None:
        kid = thumbprint(members)
    if not isinstance(kid, str) or not _KID.fullmatch(kid):
        raise UnusableKey(KeyFault.KID)
    jwk = {**members, "alg": ALGORITHMS[members["kty"]], "use": "sig", "kid": kid}
    return ClientKey(kid, json.dumps(jwk))


def _public_key(jwk: dict[str, Any]) -> PublicKey:
    try:
        match jwk.get("kty"), jwk.get("crv"):
            case "EC", "P-256":
                x, y = _number(jwk, "x"), _number(jwk, "y")
                return EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()
            case "OKP", "Ed25519":
                return Ed25519PublicKey.from_public_bytes(_bytes(jwk, "x"))
            case "RSA", None:
                return _rsa(_number(jwk, "n"), _number(jwk, "e"))
    except UnusableKey:
        raise
    except (ValueError, TypeError, KeyError, binascii.Error, UnsupportedAlgorithm):
        raise UnusableKey(KeyFault.UNREADABLE) from None
    raise UnusableKey(KeyFault.KIND)


def _rsa(modulus: int, exponent: int) -> RSAPublicKey:
    if modulus.bit_length() not in RSA_BITS:
        raise UnusableKey(KeyFault.RSA_LENGTH)
    if exponent != _RSA_EXPONENT:
        raise UnusableKey(KeyFault.RSA_EXPONENT)
    return RSAPublicNumbers(exponent, modulus).public_key()


def public_members(key: PublicKey) -> dict[str, str]:
    """The members that RFC 7638 section 3.2 names, in its order."""
    if isinstance(key, Ed25519PublicKey):
        point = key.public_bytes_raw()
        # The highest bit is the sign of x.
        if int.from_bytes(point, "little") % 2**255 % _PRIME in _WEAK_POINTS:
            raise UnusableKey(KeyFault.UNREADABLE)
        return {"crv": "Ed25519", "kty": "OKP", "x": _encode(point)}
    if isinstance(key, RSAPublicKey):
        rsa = key.public_numbers()
        _rsa(rsa.n, rsa.e)
        return {"e": _encode(_big_endian(rsa.e)), "kty": "RSA", "n": _encode(_big_endian(rsa.n))}
    if not isinstance(key.curve, SECP256R1):
        raise UnusableKey(KeyFault.KIND)
    place = key.public_numbers()
    x, y = (_encode(number.to_bytes(_COORDINATE_BYTES)) for number in (place.x, place.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def thumbprint(members: dict[str, str]) -> str:
    """Of a key with these members (RFC 7638)."""
    canonical = json.dumps(members, separators=(",", ":"))
    return _encode(hashlib.sha256(canonical.encode()).digest())


def _bytes(jwk: dict[str, Any], member: str) -> bytes:
    text: str = jwk[member]
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _number(jwk: dict[str, Any], member: str) -> int:
    return int.from_bytes(_bytes(jwk, member))


def _big_endian(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
