"""How many logins are allowed, and how failures back off, as arithmetic (contract 1). Pure.

A client's minute begins with its first login and lasts 60 seconds; in it at most its limit of
logins succeed. Where the counters are kept is not known here.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

WINDOW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Quota:
    """A client's counter: `used` logins since `started_at`, of `limit` (0: never refused)."""

    limit: int
    used: int
    started_at: datetime

    @property
    def is_used_up(self) -> bool:
        return self.limit != 0 and self.used >= self.limit

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def resets_at(self) -> datetime:
        return self.started_at + WINDOW

    def with_one_more(self) -> "Quota":
        return Quota(self.limit, self.used + 1, self.started_at)


def is_open(started_at: datetime, at: datetime) -> bool:
    """Whether a minute that began at `started_at` still counts.

    One that begins a little in the future is another node's fast clock, and counts too.
    """
    return abs(at - started_at) < WINDOW


@dataclass(frozen=True, slots=True)
class Throttle:
    """A "not now": nothing is heard until `until`; `limit` is 0 where failures back off."""

    until: datetime
    limit: int = 0
    secret_expires_at: datetime | None = None

    def retry_after_seconds(self, at: datetime) -> int:
        """Whole seconds to wait, at least one."""
        return max(1, ceil((self.until - at).total_seconds()))


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long failures are not heard: `free` cost nothing, then 1, 2, 4 … seconds up to `cap`."""

    free: int
    cap_seconds: int

    @property
    def pauses_seconds(self) -> tuple[int, ...]:
        """The pause after the 1st, 2nd, … failure; the last one holds for all further."""
        pauses = [0] * self.free
        pause = 1
        while pause < self.cap_seconds:
            pauses.append(pause)
            pause *= 2
        return (*pauses, self.cap_seconds)


FAILURES_FORGOTTEN_AFTER = timedelta(hours=1)
# One caller that fails for one id: a handful of mistakes is human. One address that fails for
# whatever ids: many ERP systems may share it, so it has more.
PAIR_BACKOFF = Backoff(free=10, cap_seconds=300)
ADDRESS_BACKOFF = Backoff(free=200, cap_seconds=60)


class DenialCache:
    """The denials that this process remembers, at most `size` of them, the oldest go first."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._denials: OrderedDict[Hashable, Throttle] = OrderedDict()

    def remember(self, key: Hashable, denial: Throttle) -> None:
        self._denials[key] = denial
        while len(self._denials) > self._size:
            self._denials.popitem(last=False)

    def find(self, key: Hashable, at: datetime) -> Throttle | None:
        """The denial that still holds at the moment `at`; an ended one is forgotten."""
        denial = self._denials.get(key)
        if denial is not None and denial.until <= at:
            self._denials.pop(key, None)
            return None
        return denial

    def clear(self) -> None:
        self._denials.clear()
