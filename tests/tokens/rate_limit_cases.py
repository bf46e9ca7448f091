"""Each rule of the limits once, as a case: for the pure functions and for every store. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from tokens.rate_limits.backoff import BucketState, count_failure, count_rejection
from tokens.rate_limits.quota import CounterState, Quota, count_login
from tokens.rate_limits.throttle import Throttle

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Kind(Enum):
    LOGIN = "the counter of its client"
    FAILURE = "the buckets of its pair and of its address"
    REJECTION = "the bucket of its address"


@dataclass(frozen=True)
class Case:
    """A call at the moment `at`, on rows that stand at `before`: its outcome, the rows after it."""

    claim: str
    kind: Kind
    before: tuple[Any, ...]
    at: datetime
    outcome: Quota | Throttle | None
    after: tuple[Any, ...]
    limit: int = 0

    @property
    def decided(self) -> tuple[Quota | Throttle | None, tuple[Any, ...]]:
        """The outcome and the rows after it, by the pure function."""
        found: Any
        match self.kind:
            case Kind.LOGIN:
                found = count_login(self.before[0], self.limit, self.at)
                if isinstance(found, Quota):
                    return found, (CounterState(found.window_started_at, found.used),)
            case Kind.FAILURE:
                found = count_failure(self.before[0], self.before[1], self.at)
            case Kind.REJECTION:
                found = count_rejection(self.before[0], self.at)
                found = found if isinstance(found, Throttle) else (found,)
        return (found, self.before) if isinstance(found, Throttle) else (None, found)

    def later(self, by: timedelta) -> "Case":
        """The same call at another moment, as the pure function decides it."""
        moved = replace(self, claim=f"{self.claim}, {by.total_seconds():+g} s", at=self.at + by)
        outcome, after = moved.decided
        return replace(moved, outcome=outcome, after=after)

    @property
    def essence(self) -> object:
        """What does not depend on the very moment."""
        if isinstance(self.outcome, Quota):
            return self.outcome.used, self.begins_window
        return self.outcome or [(state.failures, state.retry_at - self.at) for state in self.after]

    @property
    def begins_window(self) -> bool:
        (before,), (after,) = self.before, self.after
        return before is None or before.window_started_at != after.window_started_at


def counted(
    claim: str,
    before: CounterState | None,
    limit: int,
    at: datetime,
    *,
    window: datetime,
    used: int,
) -> Case:
    outcome, after = Quota(limit, used, window), CounterState(window, used)
    return Case(claim, Kind.LOGIN, (before,), at, outcome, (after,), limit)


def denied(claim: str, before: CounterState, limit: int, at: datetime, retry_at: datetime) -> Case:
    return Case(claim, Kind.LOGIN, (before,), at, Throttle(retry_at, limit), (before,), limit)


def used(count: int) -> CounterState:
    return CounterState(AT, count)


END = AT + 60 * SECOND
LOGINS = [
    counted("the first login begins a window", None, 3, AT, window=AT, used=1),
    counted("a limit of one allows one", None, 1, AT, window=AT, used=1),
    counted("the next login counts in it", used(1), 3, AT + 7 * SECOND, window=AT, used=2),
    counted("the limit itself is allowed", used(2), 3, END - MICROSECOND, window=AT, used=3),
    denied("beyond the limit is denied until the end", used(3), 3, AT, END),
    denied("beyond the limit, later", used(3), 3, AT + 7 * SECOND, END),
    denied("beyond the limit, until the last moment", used(3), 3, END - MICROSECOND, END),
    counted("a window lasts 60 seconds", used(3), 3, END, window=END, used=1),
    counted("an old window is over", used(2), 3, AT + DAY, window=AT + DAY, used=1),
    counted("a clock that is behind", used(1), 2, AT - 2 * SECOND, window=AT, used=2),
    denied("a clock that is behind, beyond the limit", used(2), 2, AT - 2 * SECOND, END),
    denied("a clock that is behind by almost a window", used(2), 2,
           AT - 60 * SECOND + MICROSECOND, END),
    counted("a clock that is behind by a whole window", used(2), 2, AT - 60 * SECOND,
            window=AT - 60 * SECOND, used=1),
    counted("no limit, first login", None, 0, AT, window=AT, used=1),
    counted("no limit, many logins", used(10**6), 0, AT, window=AT, used=10**6 + 1),
    counted("no limit, next window", used(10**6), 0, END, window=END, used=1),
    counted("a limit that was raised", used(3), 5, AT + SECOND, window=AT, used=4),
    denied("a limit that was lowered", used(5), 3, AT + SECOND, END),
    counted("a limit that was lowered, next window", used(5), 3, END, window=END, used=1),
    denied("a limit where there was none", used(10**6), 1, AT + SECOND, END),
    counted("no limit where there was one", used(3), 0, AT + SECOND, window=AT, used=4),
]  # fmt: skip


Bucket = BucketState | None


def accepted(claim: str, pair: Bucket, address: Bucket, at: datetime, *after: BucketState) -> Case:
    return Case(claim, Kind.FAILURE, (pair, address), at, None, after)


def throttled(claim: str, pair: Bucket, address: Bucket, at: datetime, retry_at: datetime) -> Case:
    before = pair, address
    return Case(claim, Kind.FAILURE, before, at, Throttle(retry_at), before)


def failed(failures: int, pause: int = 0, at: datetime = AT) -> BucketState:
    """That many failures, the last at this moment, and the seconds of the pause after it."""
    return BucketState(failures, at, at + pause * SECOND)


def one_after_the_other(pauses: Sequence[int]) -> list[tuple[BucketState | None, BucketState]]:
    """Each failure as soon as it is accepted: the bucket before and after it."""
    states: list[BucketState] = []
    for failures, pause in enumerate(pauses, 1):
        at = states[-1].retry_at if states else AT
        states.append(failed(failures, pause, at))
    return list(zip([None, *states], states, strict=False))


PAIR_PAUSES = [0] * 10 + [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
ADDRESS_PAUSES = [0] * 200 + [1, 2, 4, 8, 16, 32, 60]
LATER = AT + 10 * SECOND
FAILURES = [
    *(
        accepted(f"failure {after.failures} of a pair", before, None, after.last_at,
                 after, failed(1, at=after.last_at))
        for before, after in one_after_the_other(PAIR_PAUSES)
    ),
    *(
        accepted(f"failure {after.failures} of an address", None, before, after.last_at,
                 failed(1, at=after.last_at), after)
        for before, after in one_after_the_other(ADDRESS_PAUSES)
        if after.failures in (1, 2, 100) or after.failures >= 199
    ),
    accepted("the longest pause of a pair stays", failed(20, 300), None, AT + 300 * SECOND,
             failed(20, 300, AT + 300 * SECOND), failed(1, at=AT + 300 * SECOND)),
    accepted("the longest pause of an address stays", None, failed(207, 60), AT + 60 * SECOND,
             failed(1, at=AT + 60 * SECOND), failed(207, 60, AT + 60 * SECOND)),
    throttled("in the pause of a pair", failed(12, 2), None, AT, AT + 2 * SECOND),
    throttled("at the last moment of the pause", failed(12, 2), None,
              AT + 2 * SECOND - MICROSECOND, AT + 2 * SECOND),
    throttled("in the pause of an address", None, failed(201, 1), AT, AT + SECOND),
    throttled("one pauses, the other does not", failed(3), failed(202, 2), AT, AT + 2 * SECOND),
    throttled("both pause, the pair longer", failed(13, 4), failed(202, 2), AT, AT + 4 * SECOND),
    throttled("both pause, the address longer", failed(11, 1), failed(205, 16), AT,
              AT + 16 * SECOND),
    throttled("one pause is over", failed(11, 1), failed(205, 16), AT + 2 * SECOND,
              AT + 16 * SECOND),
    throttled("a pause, and a clock that is behind", failed(12, 2), None, AT - SECOND,
              AT + 2 * SECOND),
    accepted("no pause, and a clock that is behind", failed(5), failed(6), AT - SECOND,
             failed(6, at=AT - SECOND), failed(7, at=AT - SECOND)),
    accepted("after an hour without a failure", failed(15, 16), failed(203, 4),
             AT + HOUR + MICROSECOND,
             failed(1, at=AT + HOUR + MICROSECOND), failed(1, at=AT + HOUR + MICROSECOND)),
    accepted("an hour is not more than an hour", failed(15, 16), failed(5), AT + HOUR,
             failed(16, 32, AT + HOUR), failed(6, at=AT + HOUR)),
    accepted("one has expired, the other has not", failed(9, at=LATER), failed(203, 4),
             LATER + HOUR, failed(10, at=LATER + HOUR), failed(1, at=LATER + HOUR)),
]  # fmt: skip


def rejected(claim: str, before: Bucket, at: datetime, after: BucketState) -> Case:
    return Case(claim, Kind.REJECTION, (before,), at, None, (after,))


def paused(claim: str, before: Bucket, at: datetime, retry_at: datetime) -> Case:
    return Case(claim, Kind.REJECTION, (before,), at, Throttle(retry_at), (before,))


REJECTION_PAUSES = [0] * 500 + [1, 2, 4, 8, 16, 30]
REJECTIONS = [
    *(
        rejected(f"request {after.failures} of an address", before, after.last_at, after)
        for before, after in one_after_the_other(REJECTION_PAUSES)
        if after.failures in (1, 2, 11, 201) or after.failures >= 499
    ),
    rejected("the longest pause stays", failed(506, 30), AT + 30 * SECOND,
             failed(506, 30, AT + 30 * SECOND)),
    paused("in the pause", failed(502, 2), AT, AT + 2 * SECOND),
    paused("at the last moment of the pause", failed(505, 16), AT + 16 * SECOND - MICROSECOND,
           AT + 16 * SECOND),
    paused("a pause, and a clock that is behind", failed(506, 30), AT - SECOND, AT + 30 * SECOND),
    rejected("no pause, and a clock that is behind", failed(5), AT - SECOND,
             failed(6, at=AT - SECOND)),
    rejected("after an hour without a request", failed(505, 16), AT + HOUR + MICROSECOND,
             failed(1, at=AT + HOUR + MICROSECOND)),
    rejected("an hour is not more than an hour", failed(503, 4), AT + HOUR,
             failed(504, 8, AT + HOUR)),
]  # fmt: skip


# A store counts by the clock of the database. So the moments of a case are moved until it happens
# now, and it must not matter that now is some milliseconds later. Where it would matter, the same
# is tried before and after the moment at which the outcome changes.
_UNSURE, _MARGIN = timedelta(seconds=2), timedelta(seconds=5)


def cases_of_stores(cases: Sequence[Case]) -> list[Case]:
    """Cases whose outcome does not depend on a clock that is two seconds off."""
    return [chosen for case in cases for chosen in _sure(case)]


def _sure(case: Case) -> Iterator[Case]:
    if all(case.later(by).essence == case.essence for by in (-_UNSURE, _UNSURE)):
        yield case
        return
    for by in (-_MARGIN, _MARGIN):
        yield case.later(by)


def moved(state: Any, by: timedelta) -> Any:
    if state is None:
        return None
    return state._make(v + by if isinstance(v, datetime) else v for v in state)
