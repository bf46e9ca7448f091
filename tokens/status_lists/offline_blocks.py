"""Blocks while the registry cannot be changed: signed files that operators put into a folder.

A JWT, signed by a separate key (EdDSA, RFC 8037), whose public part every node knows before. Each
holds until the registry has decided about its client, by a block or by the end of one.
"""

import json
import logging
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db.models import Max
from msgspec.structs import replace

from taxpayers.actions import BLOCK_SYSTEM_USER, UNBLOCK_SYSTEM_USER
from taxpayers.credentials import is_client_id
from taxpayers.facts.values import Facts
from taxpayers.models import Change, SystemUser
from tokens.access_tokens.status import TokenFacts
from tokens.uptime import uptime

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
    """The block of a file that one of these keys signed for this service. Raises NotAccepted."""
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


logger = logging.getLogger("tokens.status_lists")

# So long after the registry has it the lists have it, too.
_LISTED_SECONDS = 10.0
_MOST_FILES = 100
_DECISIONS = (BLOCK_SYSTEM_USER.name, UNBLOCK_SYSTEM_USER.name)
_Version = tuple[str, int, int, int]  # of a file


class OfflineBlocks:
    """`since`: the clients that are blocked now, and from which moment on."""

    def __init__(self) -> None:
        self.since: Mapping[str, datetime] = {}
        self._read: dict[_Version, OfflineBlock | NotAccepted] = {}
        self._told: set[tuple[_Version, str]] = set()
        # When the registry's own decision was seen first, by `uptime`.
        self._decided: dict[tuple[str, datetime], float] = {}

    def look(self, at: datetime) -> None:
        """Reads the files that are new. It never raises."""
        self._read = {one: self._read.get(one) or _read(one) for one in _files()}
        since: dict[str, datetime] = {}
        for version, block in self._read.items():
            try:
                if isinstance(block, NotAccepted):
                    raise block
                block.check_age(at)
            except NotAccepted as fault:
                self._tell_once(version, f"an offline block is refused: {version[0]}: {fault}")
                continue
            self._tell_once(version, f"an offline block is in force: {_described(block)}")
            for client_id in block.client_ids:
                if not self._is_over(client_id, block.at):
                    since[client_id] = max(block.at, since.get(client_id, block.at))
        self.since = since

    def compare_with_registry(self) -> None:
        """Notes which of them the registry has decided about. Raises django.db.DatabaseError."""
        waiting = {c: at for c, at in self.since.items() if (c, at) not in self._decided}
        if not waiting:
            return
        rows = SystemUser.objects.filter(client_id__in=waiting)
        fields = rows.values_list("pk", "client_id", "blocked_at")
        users = {str(pk): (client_id, blocked_at) for pk, client_id, blocked_at in fields}
        changes = Change.objects.filter(
            object_type=SystemUser._meta.model_name, object_id__in=users, action__in=_DECISIONS
        )
        latest = dict(changes.values_list("object_id").annotate(Max("at")))
        for pk, (client_id, blocked_at) in users.items():
            decided_at, since = latest.get(pk), waiting[client_id]
            if blocked_at or (decided_at and decided_at >= since):
                self._decided[client_id, since] = uptime()

    def _is_over(self, client_id: str, since: datetime) -> bool:
        decided = self._decided.get((client_id, since))
        return decided is not None and uptime() - decided > _LISTED_SECONDS

    def _tell_once(self, version: _Version, text: str) -> None:
        if (version, text) not in self._told:
            self._told.add((version, text))
            logger.error(text)


def _files() -> list[_Version]:
    found: list[_Version] = []
    try:
        with os.scandir(settings.OFFLINE_BLOCK_DIR) as entries:
            for one in entries:
                if one.name.endswith(".jwt"):
                    about = one.stat()
                    found.append((one.name, about.st_mtime_ns, about.st_size, about.st_ino))
    except OSError:  # most often there is no folder
        pass
    return sorted(found)[-_MOST_FILES:]


def _read(version: _Version) -> OfflineBlock | NotAccepted:
    try:
        with (Path(settings.OFFLINE_BLOCK_DIR) / version[0]).open("rb") as file:
            text = file.read(MAX_BYTES).decode("ascii", "replace").strip()
        return read(text, settings.OFFLINE_BLOCK_KEYS, settings.AUTH_URL)
    except NotAccepted as fault:
        return fault
    except OSError as error:
        return NotAccepted(f"it cannot be read: {error.strerror}")


def _described(block: OfflineBlock) -> str:
    some = ", ".join(block.client_ids[:10])
    return f"{len(block.client_ids)} clients ({some}), by {block.by}: {block.reason}"


_blocks = OfflineBlocks()


def offline_blocks() -> OfflineBlocks:
    """Those of this process."""
    return _blocks


def forget_offline_blocks() -> None:
    """As in a new process: in tests."""
    global _blocks  # noqa: PLW0603 - the only state of the process
    _blocks = OfflineBlocks()


def with_offline_block(facts: Facts) -> Facts:
    """The same facts; of a client that is blocked offline, as if the registry had the block."""
    since = _blocks.since.get(facts.client.client_id)
    if since is None or facts.client.blocked_at is not None:
        return facts
    return replace(facts, client=replace(facts.client, blocked_at=since))


def token_with_offline_block(facts: TokenFacts) -> TokenFacts:
    """The same, for the login of a token."""
    login = facts.login
    return facts if login is None else replace(facts, login=with_offline_block(login))
