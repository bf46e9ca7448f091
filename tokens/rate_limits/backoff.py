"""How long a caller that fails has to wait: exponential backoff (contract 1, Limits). Pure.

A failed login counts in two buckets: that of its client id and source address, and that of its
address alone. Stores that repeat this in SQL are tested with the same table of cases.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from tokens.rate_limits.throttle import Throttle

FAILURES_EXPIRE_AFTER = timedelta(hours=1)


class BucketState(NamedTuple):
    """What is stored of a bucket; its next failure is accepted from `retry_at` on."""

    failures: int
    last_at: datetime
    retry_at: datetime


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


def count_failure(
    pair: BucketState | None, address: BucketState | None, at: datetime
) -> tuple[BucketState, BucketState] | Throttle:
    """Both buckets with this failure counted, to be stored; or a Throttle, then nothing changes."""
    # A failure without a pause throttles nobody, not even a node whose clock is behind.
    pauses_end = [
        bucket.retry_at
        for bucket in (pair, address)
        if bucket is not None and bucket.retry_at > max(at, bucket.last_at)
    ]
    if pauses_end:
        return Throttle(max(pauses_end))
    return PAIR_BACKOFF.next_state(pair, at), ADDRESS_BACKOFF.next_state(address, at)
