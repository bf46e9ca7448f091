"""The key ring of this process, and the signature on an access token (contract 2, RFC 9068)."""

import logging
import os
import threading
from datetime import datetime, timedelta
from typing import Any

import jwt
from django.db import DatabaseError

from tokens.keys.ring import Key, KeyRing, NoUsableKey
from tokens.keys.store import read_key_ring

logger = logging.getLogger("tokens.keys.ring")

# A rotation is seen by every process within half a minute; the new key waits for ten.
READ_EVERY = timedelta(seconds=30)


class _Keeper:
    """What this process knows. One thread reads again while the others use what there is."""

    def __init__(self) -> None:
        self._ring: KeyRing | None = None
        self._asked_at: datetime | None = None
        self._reading = threading.Lock()

    def ring(self, at: datetime) -> KeyRing:
        ring = self._ring
        if ring is not None and self._is_fresh(at):
            return ring
        if not self._reading.acquire(blocking=ring is None):
            assert ring is not None  # noqa: S101 - without one it waits for the lock
            return ring
        try:
            return self._read(at)
        finally:
            self._reading.release()

    def _read(self, at: datetime) -> KeyRing:
        ring = self._ring
        if ring is not None and self._is_fresh(at):  # another thread has just read it
            return ring
        try:
            ring = read_key_ring(at, known=ring)
        except DatabaseError:
            if ring is None:
                raise
            logger.warning("signing keys not read again: database out of reach", exc_info=True)
        self._ring, self._asked_at = ring, at
        return ring

    def _is_fresh(self, at: datetime) -> bool:
        # The clock may have been set back, so a moment ahead of this one ages as well.
        return self._asked_at is not None and abs(at - self._asked_at) < READ_EVERY


_keeper = _Keeper()


def current_key_ring(at: datetime) -> KeyRing:
    """The published keys as they were at most READ_EVERY before this moment.

    If the table cannot be read, what was read last goes on to be used; raises
    django.db.DatabaseError only if nothing ever was.
    """
    return _keeper.ring(at)


def sign(claims: dict[str, Any], key: Key) -> str:
    """The claims as a signed access token: header `typ` at+jwt (RFC 9068 section 2.1), alg, kid.

    Raises NoUsableKey for a key whose private part cannot be used.
    """
    if key.private_key is None:
        raise NoUsableKey(f"The private part of {key.kid} cannot be used.")
    # PyJWT takes 26 µs, the bare signature 19: not worth a format of our own.
    return jwt.encode(claims, key.private_key, key.alg, {"typ": "at+jwt", "kid": key.kid})


def forget_key_ring() -> None:
    """Reads the table on the next call, as a new process does: after a fork, and in tests."""
    global _keeper  # noqa: PLW0603 - the one piece of state of a process
    _keeper = _Keeper()


os.register_at_fork(after_in_child=forget_key_ring)
