"""How many authenticated logins a client has left (contract 1, Limits). Pure.

A client's window begins with its first login and lasts 60 seconds; in it at most its limit of
logins succeed. Stores that repeat this in SQL are tested with the same table of cases.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from taxpayers.value import Value
from tokens.rate_limits.throttle import Throttle

WINDOW = timedelta(seconds=60)


class CounterState(NamedTuple):
    """What is stored for a client: how many logins its latest window has."""

    window_started_at: datetime
    used: int


class Quota(Value):
    """`used` logins of `limit` (0: unlimited, still counted) since `window_started_at`."""

    limit: int
    used: int
    window_started_at: datetime

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def resets_at(self) -> datetime:
        return self.window_started_at + WINDOW


def current_quota(counter: CounterState | None, limit: int, at: datetime) -> Quota:
    """The quota at the moment `at`, by the stored counter; None: the client never logged in.

    A window that begins a little in the future was begun by a node whose clock is ahead: it counts.
    """
    if counter is None or abs(at - counter.window_started_at) >= WINDOW:
        return Quota(limit, 0, at)
    return Quota(limit, counter.used, counter.window_started_at)


def count_login(counter: CounterState | None, limit: int, at: datetime) -> Quota | Throttle:
    """The quota with this login counted, to be stored; or a Throttle, then nothing changes."""
    quota = current_quota(counter, limit, at)
    if limit and quota.used >= limit:
        return Throttle(quota.resets_at, limit)
    return Quota(limit, quota.used + 1, quota.window_started_at)
