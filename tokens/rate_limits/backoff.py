"""How long a caller that fails has to wait: exponential backoff (contract 1, Limits). Pure.

A failed login counts in two buckets: that of its client id and source address, and that of only
its address. A request that is refused before authentication counts in a third one, also of its
address. Buckets are numbers in a table of a fixed size. Stores that repeat this in SQL are tested
with the same table of cases.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network
from typing import NamedTuple

from tokens.rate_limits.throttle import Throttle

FAILURES_EXPIRE_AFTER = timedelta(hours=1)


class BucketState(NamedTuple):
    """What is stored of a bucket: its failures are failed logins, or rejected requests."""

    failures: int
    last_at: datetime
    retry_at: datetime  # the next failure is accepted from then on


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first `free` failures cause no pause, then it is 1, 2, 4 … seconds up to the cap."""

    free: int
    cap_seconds: int

    @property
    def pauses_seconds(self) -> tuple[int, ...]:
        """The pause after the 1st, 2nd, … failure; after the last one it stays the same."""
        pauses = [0] * self.free
        pause = 1
        while pause < self.cap_seconds:
            pauses.append(pause)
            pause *= 2
        return (*pauses, self.cap_seconds)

    def next_state(self, bucket: BucketState | None, at: datetime) -> BucketState:
        """The bucket with one more failure; None: it never had one."""
        is_expired = bucket is None or bucket.last_at < at - FAILURES_EXPIRE_AFTER
        before = 0 if bucket is None or is_expired else bucket.failures
        pauses = self.pauses_seconds
        failures = min(before + 1, len(pauses))
        return BucketState(failures, at, at + timedelta(seconds=pauses[failures - 1]))


# A caller that fails for one id: a few mistakes are human. An address that fails for any ids: many
# ERP systems may share it, so it has more.
PAIR_BACKOFF = Backoff(free=10, cap_seconds=300)
ADDRESS_BACKOFF = Backoff(free=200, cap_seconds=60)
# An address that sends what cannot log in: it guesses nothing, but each event takes
# space. At most 500 at once, 2,880 a day without an end, and 12,000 a day after pauses of an hour.
REJECTION_BACKOFF = Backoff(free=500, cap_seconds=30)


def count_failure(
    pair: BucketState | None, address: BucketState | None, at: datetime
) -> tuple[BucketState, BucketState] | Throttle:
    """Both buckets with this failure counted, to be stored; or a Throttle, then nothing changes."""
    throttle = _pause_of(at, pair, address)
    if throttle is not None:
        return throttle
    return PAIR_BACKOFF.next_state(pair, at), ADDRESS_BACKOFF.next_state(address, at)


def count_rejection(bucket: BucketState | None, at: datetime) -> BucketState | Throttle:
    """The bucket with this rejected request counted; or a Throttle, then nothing changes."""
    return _pause_of(at, bucket) or REJECTION_BACKOFF.next_state(bucket, at)


def _pause_of(at: datetime, *buckets: BucketState | None) -> Throttle | None:
    # A failure without a pause throttles no caller, not even a node whose clock is behind.
    pauses_end = [
        bucket.retry_at
        for bucket in buckets
        if bucket is not None and bucket.retry_at > max(at, bucket.last_at)
    ]
    return Throttle(max(pauses_end)) if pauses_end else None


NUMBER = 1 << 16  # of buckets of each kind

_IPV6_PREFIX = 64


class Buckets:
    """Those of each caller, by a key: no attacker can look for an innocent caller's to fail in."""

    def __init__(self, key: bytes) -> None:
        """The key has at most 64 bytes."""
        self._key = key

    def of_pair(self, client_id: str, address: str | None) -> int:
        """Of failed logins with this id, as sent, from this address: an even number."""
        return 2 * self._hash(f"{client_id}\n{counted_address(address)}")

    def of_address(self, address: str | None) -> int:
        """Of failed logins from this address: an odd number."""
        return 2 * self._hash(counted_address(address)) + 1

    def of_rejections(self, address: str | None) -> int:
        """Of rejected requests from this address: a number behind those of failed logins."""
        return 2 * NUMBER + self._hash(counted_address(address))

    def _hash(self, caller: str) -> int:
        digest = hashlib.blake2b(caller.encode(), key=self._key, digest_size=4).digest()
        return int.from_bytes(digest) % NUMBER


@lru_cache(maxsize=1024)
def counted_address(address: str | None) -> str:
    """The address, or the network, that a caller is counted by; None: it has no address.

    An IPv6 address counts as its /64, which one customer holds (RFC 6177). Raises ValueError.
    """
    if address is None:
        return ""
    if ":" not in address:
        return address
    ipv6 = IPv6Address(address)
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(IPv6Network((int(ipv6), _IPV6_PREFIX), strict=False))
