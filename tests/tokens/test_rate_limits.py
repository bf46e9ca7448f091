"""Limits: each rule once as a case, for the pure function and for the store of this database."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connections
from uuid_utils.compat import uuid7

from taxpayers.models import RateLimitCounter
from tokens.login_events.events import CountedLogin, Event, FailedLogin
from tokens.login_events.store import LoginEventStore, login_event_store
from tokens.models import FailureBucket, LoginEvent
from tokens.rate_limits.backoff import Backoff, BucketState, count_failure
from tokens.rate_limits.denial_cache import DenialCache
from tokens.rate_limits.quota import CounterState, Quota, count_login, current_quota
from tokens.rate_limits.throttle import Throttle

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


# --- A login and the counter of its client ------------------------------------------------------


@dataclass(frozen=True)
class LoginCase:
    """A login at the moment `at` with this limit, on a counter that stands at `before`."""

    claim: str
    before: CounterState | None
    limit: int
    at: datetime
    outcome: Quota | Throttle
    after: CounterState


def counted(
    claim: str,
    before: CounterState | None,
    limit: int,
    at: datetime,
    *,
    window: datetime,
    used: int,
) -> LoginCase:
    return LoginCase(
        claim, before, limit, at, Quota(limit, used, window), CounterState(window, used)
    )


def denied(
    claim: str, before: CounterState, limit: int, at: datetime, retry_at: datetime
) -> LoginCase:
    return LoginCase(claim, before, limit, at, Throttle(retry_at, limit), before)


def used(count: int) -> CounterState:
    """That many logins in the window that began at AT."""
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
each_login = pytest.mark.parametrize("case", LOGINS, ids=[case.claim for case in LOGINS])


@each_login
def test_a_login_is_counted_by_the_pure_function(case: LoginCase) -> None:
    assert count_login(case.before, case.limit, case.at) == case.outcome


@each_login
@pytest.mark.django_db
def test_a_login_is_counted_by_the_store(case: LoginCase) -> None:
    if case.before is not None:
        RateLimitCounter.objects.create(system_user_id=1, **case.before._asdict())
    outcome = login_event_store().add_counted(event(case.at), login(case.limit, case.at))
    assert outcome == case.outcome
    assert list(RateLimitCounter.objects.values_list(*CounterState._fields)) == [case.after]
    assert LoginEvent.objects.count() == isinstance(outcome, Quota)


def quota_before(case: LoginCase) -> Quota:
    """The quota that this login meets: one login less than what counting it gives."""
    if isinstance(case.outcome, Throttle):
        return Quota(case.limit, case.after.used, case.after.window_started_at)
    return Quota(case.limit, case.outcome.used - 1, case.outcome.window_started_at)


@each_login
def test_reading_a_quota_counts_nothing(case: LoginCase) -> None:
    assert current_quota(case.before, case.limit, case.at) == quota_before(case)


@each_login
@pytest.mark.django_db
def test_reading_a_quota_from_the_store_counts_nothing(case: LoginCase) -> None:
    if case.before is not None:
        RateLimitCounter.objects.create(system_user_id=1, **case.before._asdict())
    assert login_event_store().quota(1, case.limit, case.at) == quota_before(case)
    assert list(RateLimitCounter.objects.values_list(*CounterState._fields)) == [
        state for state in [case.before] if state is not None
    ]


# --- A failure and its two buckets --------------------------------------------------------------


@dataclass(frozen=True)
class FailureCase:
    """A failed login at the moment `at`, on the buckets of its pair and its address."""

    claim: str
    pair: BucketState | None
    address: BucketState | None
    at: datetime
    outcome: Throttle | None
    after: tuple[BucketState | None, BucketState | None]


def accepted(
    claim: str,
    pair: BucketState | None,
    address: BucketState | None,
    at: datetime,
    *after: BucketState,
) -> FailureCase:
    pair_after, address_after = after
    return FailureCase(claim, pair, address, at, None, (pair_after, address_after))


def throttled(
    claim: str,
    pair: BucketState | None,
    address: BucketState | None,
    at: datetime,
    retry_at: datetime,
) -> FailureCase:
    return FailureCase(claim, pair, address, at, Throttle(retry_at), (pair, address))


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
FIRST = failed(1)
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
each_failure = pytest.mark.parametrize("case", FAILURES, ids=[case.claim for case in FAILURES])


@each_failure
def test_a_failure_is_counted_by_the_pure_function(case: FailureCase) -> None:
    outcome = count_failure(case.pair, case.address, case.at)
    assert outcome == (case.outcome or case.after)


@each_failure
@pytest.mark.django_db
def test_a_failure_is_counted_by_the_store(case: FailureCase) -> None:
    for pk, state in enumerate((case.pair, case.address)):
        if state is not None:
            FailureBucket.objects.create(pk=pk, **state._asdict())
    outcome = login_event_store().add_failed(event(case.at), FailedLogin(0, 1, case.at))
    assert outcome == case.outcome
    saved = FailureBucket.objects.order_by("pk").values_list("pk", *BucketState._fields)
    after = [(pk, *state) for pk, state in enumerate(case.after) if state is not None]
    assert list(saved) == after
    assert LoginEvent.objects.count() == (outcome is None)


def test_pauses_double_up_to_the_cap() -> None:
    assert Backoff(free=2, cap_seconds=10).pauses_seconds == (0, 0, 1, 2, 4, 8, 10)


# --- What a store does beside counting ----------------------------------------------------------


def event(at: datetime = AT) -> Event:
    return Event(uuid7(), at, "", None, "", "", "c", None, None, "", "", "", "", "127.0.0.1", "")


def login(limit: int, at: datetime = AT, secret_id: int = 5) -> CountedLogin:
    return CountedLogin(1, secret_id, limit, at)


@pytest.fixture
def store(db: None) -> LoginEventStore:
    return login_event_store()


def test_an_event_that_counts_against_nothing_is_stored(store: LoginEventStore) -> None:
    store.add(event())
    assert LoginEvent.objects.count() == 1
    assert not RateLimitCounter.objects.exists()
    assert not FailureBucket.objects.exists()


def test_the_window_of_each_secrets_last_use_is_stored(store: LoginEventStore) -> None:
    def log_in(secret_id: int, at: datetime) -> dict[str, datetime]:
        store.add_counted(event(at), login(0, at, secret_id))
        used = RateLimitCounter.objects.get().secrets_used
        return {key: datetime.fromisoformat(began_at) for key, began_at in used.items()}

    later, next_day = AT + 7 * SECOND, AT + DAY
    assert log_in(5, AT) == {"5": AT}
    assert log_in(5, later) == {"5": AT}
    assert log_in(6, later) == {"5": AT, "6": AT}
    assert log_in(6, next_day) == {"5": AT, "6": next_day}
    # A secret that was unused for long does not look unused because another one began the window.
    assert log_in(5, next_day + SECOND) == {"5": next_day, "6": next_day}


def test_a_denied_login_is_no_use_of_its_secret(store: LoginEventStore) -> None:
    store.add_counted(event(), login(1, secret_id=5))
    store.add_counted(event(), login(1, secret_id=6))
    assert list(RateLimitCounter.objects.get().secrets_used) == ["5"]


def test_other_clients_and_callers_do_not_count(store: LoginEventStore) -> None:
    RateLimitCounter.objects.create(system_user_id=2, window_started_at=AT, used=9)
    FailureBucket.objects.create(pk=2, **failed(12, 2)._asdict())
    assert store.add_counted(event(), login(1)) == Quota(1, 1, AT)
    assert store.add_failed(event(), FailedLogin(0, 1, AT)) is None


@pytest.mark.django_db(transaction=True)
def test_an_event_and_its_count_are_stored_together_or_not_at_all(store: LoginEventStore) -> None:
    stored = event()
    store.add(stored)  # so that a second event with its id is refused
    with pytest.raises(IntegrityError):
        store.add_counted(stored, login(12))
    with pytest.raises(IntegrityError):
        store.add_failed(stored, FailedLogin(0, 1, AT))
    assert LoginEvent.objects.count() == 1
    assert not RateLimitCounter.objects.exists()
    assert not FailureBucket.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_many_threads_get_exactly_the_limit(store: LoginEventStore) -> None:
    def log_in(_: int) -> bool:
        try:
            return isinstance(store.add_counted(event(), login(12)), Quota)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        allowed = sum(threads.map(log_in, range(40)))
    assert allowed == 12
    assert LoginEvent.objects.count() == 12


def test_a_database_engine_without_a_store_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections["default"], "vendor", "oracle")
    with pytest.raises(ImproperlyConfigured) as error:
        login_event_store()
    assert str(error.value) == (
        "No login event store for the database engine oracle: use postgresql or sqlite."
    )


# --- Values -------------------------------------------------------------------------------------


def test_a_quota_knows_what_remains_and_when_it_resets() -> None:
    assert Quota(3, 1, AT).remaining == 2
    assert Quota(3, 5, AT).remaining == 0
    assert Quota(3, 1, AT).resets_at == END


@pytest.mark.parametrize(("left", "seconds"), [(0.0001, 1), (1, 1), (1.0001, 2), (59.5, 60)])
def test_retry_after_is_rounded_up_to_whole_seconds(left: float, seconds: int) -> None:
    assert Throttle(AT + timedelta(seconds=left)).retry_after_seconds(AT) == seconds


def test_denials_are_dropped_when_they_end_and_never_grow_beyond_their_size() -> None:
    denials = DenialCache(size=2)
    for name in "abc":
        denials.remember(name, Throttle(AT + SECOND))
    assert [denials.find(name, AT) is not None for name in "abc"] == [False, True, True]
    assert denials.find("c", AT + SECOND) is None
