"""The key ring of this process, and the signature on an access token (contract 2, RFC 9068)."""

import logging
import os
import threading
from binascii import b2a_base64
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from django.db import DatabaseError, OperationalError
from jwt.algorithms import get_default_algorithms

from taxpayers.repeated import repeat
from taxpayers.shut_down import answered_within
from tokens.keys.ring import Key, KeyRing, NoUsableKey
from tokens.keys.store import read_key_ring

logger = logging.getLogger("tokens.keys")

# The server reads the ring this often, in a thread: so soon every process obeys a compromise.
READ_EVERY = timedelta(seconds=1)
# Without that thread it is read when it is needed, and not more often.
REFRESH_INTERVAL = timedelta(seconds=10)
# Of that thread; no login waits for it.
_ANSWER_SECONDS = 5.0


class KeyRingCache:
    """The key ring that was read last. While one thread reads it again, the others use that one."""

    def __init__(self) -> None:
        self._ring: KeyRing | None = None
        self._read_at: datetime | None = None
        self._lock = threading.Lock()
        self._is_kept_fresh = False

    def get(self, at: datetime) -> KeyRing:
        """Raises django.db.DatabaseError if the ring was never read and cannot be read now."""
        ring = self._ring
        if self._is_kept_fresh:
            if ring is None:
                raise OperationalError("the signing keys could not be read yet")
            return ring
        if ring is None:
            with self._lock:
                return self._refreshed(at)
        if self._is_fresh(at) or not self._lock.acquire(blocking=False):
            return ring
        try:
            return self._refreshed(at)
        finally:
            self._lock.release()

    def keep_fresh(self) -> threading.Event:
        """From now on only a thread reads the ring; the event is set when it has tried once."""
        self._is_kept_fresh = True
        return repeat(self.read, READ_EVERY.total_seconds(), logger, "signing keys not read")

    def read(self) -> None:
        """Reads the ring on the connection of this thread. Raises django.db.DatabaseError."""
        at = datetime.now(UTC)
        with answered_within(_ANSWER_SECONDS):
            self._ring, self._read_at = read_key_ring(at, known=self._ring), at

    def _refreshed(self, at: datetime) -> KeyRing:
        ring = self._ring
        if ring is not None and self._is_fresh(at):  # another thread has just read it
            return ring
        try:
            ring = read_key_ring(at, known=ring)
        except DatabaseError:
            if ring is None:
                raise
            logger.warning("signing keys not read again: database out of reach", exc_info=True)
        self._ring, self._read_at = ring, at
        return ring

    def _is_fresh(self, at: datetime) -> bool:
        # abs: the clock may have been set back, and a time of reading in the future ages as well.
        return self._read_at is not None and abs(at - self._read_at) < REFRESH_INTERVAL


_cache = KeyRingCache()


def current_key_ring(at: datetime) -> KeyRing:
    """The published keys, at most REFRESH_INTERVAL old at this moment.

    While the table cannot be read, the last ring that was read stays in use; raises
    django.db.DatabaseError only if there is none.
    """
    return _cache.get(at)


def keep_key_ring_fresh() -> threading.Event:
    """For an event loop: see `KeyRingCache.keep_fresh`."""
    return _cache.keep_fresh()


def sign(claims: dict[str, Any], key: Key, typ: str = "at+jwt") -> str:
    """The claims as a signed JWT, an access token unless `typ` names another kind (RFC 9068 2.1).

    A compact JWS (RFC 7515 section 7.1). Raises NoUsableKey for a key without its private part.
    """
    if key.private_key is None:
        raise NoUsableKey(f"The private part of {key.kid} cannot be used.")
    signed = b"%b.%b" % (_header(typ, key.alg, key.kid), _base64url(_encode(claims)))
    return (signed + b"." + _base64url(_signature(signed, key))).decode("ascii")


def _signature(signed: bytes, key: Key) -> bytes:
    if key.alg != "ES256":
        return _ALGORITHMS[key.alg].sign(signed, key.private_key)
    # PyJWT makes and checks anew what is the same for each token.
    private_key = cast("EllipticCurvePrivateKey", key.private_key)
    r, s = decode_dss_signature(private_key.sign(signed, _ES256))
    return r.to_bytes(32) + s.to_bytes(32)  # RFC 7518 section 3.4


_ES256 = ECDSA(SHA256())


@lru_cache(maxsize=16)
def _header(typ: str, alg: str, kid: str) -> bytes:
    return _base64url(_encode({"typ": typ, "alg": alg, "kid": kid}))


def _base64url(data: bytes) -> bytes:
    """Without padding (RFC 7515 section 2)."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE, b"=")


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


_ALGORITHMS = get_default_algorithms()
_encode = msgspec.json.Encoder().encode


def clear_key_ring_cache() -> None:
    """The next call reads the table, as in a new process: after a fork, and in tests."""
    global _cache  # noqa: PLW0603 - the only state of the process; a forked lock may be held
    _cache = KeyRingCache()


os.register_at_fork(after_in_child=clear_key_ring_cache)
