"""A block while the registry cannot be changed, as a file that operators sign. Pure.

A JWT, signed by a separate key (EdDSA, RFC 8037), whose public part every node knows before.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from taxpayers.credentials import is_client_id

TYP = "offline-block+jwt"
# A file is refused when it is older: by then the registry must have the block.
VALID_FOR = timedelta(days=1)
MAX_BYTES, MAX_CLIENTS = 1_000_000, 10_000
_AHEAD = timedelta(minutes=1)  # clocks differ
_ALGORITHM = "EdDSA"


class NotAccepted(ValueError):
    """A file that blocks nothing, and why; operators read the message."""


@dataclass(frozen=True, slots=True)
class OfflineBlock:
    """Which clients are blocked since when, by which operator and why."""

    client_ids: tuple[str, ...]
    at: datetime
    by: str
    reason: str

    def check_age(self, at: datetime) -> None:
        """Raises NotAccepted if the file is too old, or of a later time."""
        if not at - VALID_FOR < self.at < at + _AHEAD:
            raise NotAccepted(f"it was made at {self.at:%Y-%m-%d %H:%M} UTC: make a new one")


def signed(block: OfflineBlock, key: Ed25519PrivateKey, issuer: str) -> str:
    """The content of the file."""
    claims = {
        "iss": issuer,
        "iat": int(block.at.timestamp()),
        "client_ids": block.client_ids,
        "by": block.by,
        "reason": block.reason,
    }
    return jwt.encode(claims, key, _ALGORITHM, {"typ": TYP})


def read(text: str, keys: Collection[str], issuer: str) -> OfflineBlock:
    """The block of a file that one of these public keys signed for this service.

    Raises NotAccepted.
    """
    claims = _verified(text, keys)
    if claims.get("iss") != issuer:
        raise NotAccepted(f"it is not for {issuer}")
    try:
        made_at = datetime.fromtimestamp(claims["iat"], UTC)
        by, reason, client_ids = claims["by"], claims["reason"], tuple(claims["client_ids"])
        if not all(map(is_client_id, client_ids)) or not 0 < len(client_ids) <= MAX_CLIENTS:
            raise ValueError
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        raise NotAccepted("its content is malformed") from None
    return OfflineBlock(client_ids, made_at, str(by), str(reason))


def _verified(text: str, keys: Collection[str]) -> dict[str, Any]:
    jws = jwt.PyJWS(algorithms=[_ALGORITHM])
    try:
        typ = jws.get_unverified_header(text).get("typ")
    except (jwt.PyJWTError, ValueError, RecursionError):
        typ = None
    if typ != TYP:
        raise NotAccepted("it is no file of block_offline")
    for key in keys:
        try:
            claims = json.loads(jws.decode(text, public_key(key), [_ALGORITHM]))
        except (jwt.PyJWTError, ValueError, RecursionError):
            continue
        if isinstance(claims, dict):
            return claims
    raise NotAccepted("its signature is of no key in OFFLINE_BLOCK_KEYS")


def public_key(text: str) -> Ed25519PublicKey:
    """The key of a setting: 32 bytes in base64url. Raises ValueError."""
    return Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def public_part(key: Ed25519PrivateKey) -> str:
    """As `OFFLINE_BLOCK_KEYS` has it."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
