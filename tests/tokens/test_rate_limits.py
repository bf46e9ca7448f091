"""Limits: each rule once as a case, for the pure function and for the store of this database."""

import heapq
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection
from uuid_utils.compat import uuid7

from taxpayers.credentials import hash_secret
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from taxpayers.sql import fetch
from tests.lanes.calls import event, failed, rejected
from tests.support.databases import present_url
from tests.support.erp import Erp
from tests.tokens.rate_limit_cases import (
    AT,
    END,
    FAILURES,
    LOGINS,
    REJECTIONS,
    SECOND,
    Case,
    Kind,
    cases_of_stores,
    moved,
)
from tokens.answers.pauses import Pauses
from tokens.calls import CountedLogin, Event, FailedLogin, RejectedRequest
from tokens.models import FailureBucket, LoginEvent
from tokens.rate_limits.backoff import NUMBER, Buckets, BucketState, counted_address
from tokens.rate_limits.quota import CounterState, Quota, current_quota
from tokens.rate_limits.throttle import DenialCache, Throttle
from tokens.store import postgresql, sqlite
from tokens.store.django_store import perform
from tokens.store.postgresql import statement_for
from tokens.store.postgresql_buckets import count_rejections

LONG_AGO = CounterState(datetime(1970, 1, 1, tzinfo=UTC), 0)  # of a client that never logged in
EPOCH, SECRET_ID = 77, 5
ALL = (*LOGINS, *FAILURES, *REJECTIONS)


def each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", cases, ids=[f"{c.kind.name.lower()}: {c.claim}" for c in cases]
    )


# --- By the pure functions ------------------------------------------------------------------------
@each(ALL)
def test_a_call_is_counted_by_the_pure_function(case: Case) -> None:
    assert case.decided == (case.outcome, case.after)


def quota_before(case: Case) -> Quota:
    """The quota that this login meets: one login less than what counting it gives."""
    if isinstance(case.outcome, Quota):
        return Quota(case.limit, case.outcome.used - 1, case.outcome.window_started_at)
    return Quota(case.limit, case.after[0].used, case.after[0].window_started_at)


@each(LOGINS)
def test_reading_a_quota_counts_nothing(case: Case) -> None:
    assert current_quota(case.before[0], case.limit, case.at) == quota_before(case)


# --- By the store ---------------------------------------------------------------------------------


def buckets_of(number: int, case: Case) -> tuple[int, ...]:
    return (2 * number, 2 * number + 1) if case.kind is Kind.FAILURE else (number,)


def call_of(number: int, case: Case, now: datetime) -> CountedLogin | FailedLogin | RejectedRequest:
    """The call of a case that happens now, with its rows as they were before."""
    before = [moved(state, now - case.at) for state in case.before]
    if case.kind is Kind.LOGIN:
        row = (before[0] or LONG_AGO)._asdict()
        RateLimitCounter.objects.create(system_user_id=number, epoch=EPOCH, **row)
        return CountedLogin(event(at=now), number, SECRET_ID, case.limit, EPOCH)
    buckets = buckets_of(number, case)
    for pk, state in zip(buckets, before, strict=True):
        if state is not None:
            FailureBucket.objects.create(pk=pk, **state._asdict())
    if case.kind is Kind.FAILURE:
        return FailedLogin(event(at=now), *buckets)
    return RejectedRequest(event(at=now), *buckets)


def assert_counted(case: Case, number: int, outcome: Any, now: datetime) -> None:
    """As the case says, with its moments moved to now, when the store counted it."""
    if case.kind is Kind.LOGIN:
        assert_login_counted(case, number, outcome, now)
        return
    buckets, by = buckets_of(number, case), now - case.at
    rows = FailureBucket.objects.filter(pk__in=buckets)
    stored = {
        pk: BucketState(*state) for pk, *state in rows.values_list("pk", *BucketState._fields)
    }
    if isinstance(case.outcome, Throttle):
        assert outcome == Throttle(case.outcome.retry_at + by)
    else:
        assert outcome is None
        counted_at = stored[buckets[0]].last_at
        assert now <= counted_at <= datetime.now(UTC)
        by = counted_at - case.at
    after = zip(buckets, case.after, strict=True)
    assert stored == {pk: moved(state, by) for pk, state in after if state is not None}


def assert_login_counted(case: Case, client: int, outcome: Any, now: datetime) -> None:
    row = RateLimitCounter.objects.get(pk=client)
    by = now - case.at
    if not isinstance(case.outcome, Quota):
        assert outcome is None
        assert (row.window_started_at, row.used) == moved(case.after[0], by)
        return
    window = row.window_started_at
    if case.begins_window:
        assert now <= window <= datetime.now(UTC)
    else:
        assert window == case.outcome.window_started_at + by
    assert outcome == Quota(case.limit, case.outcome.used, window)
    assert row.used == case.outcome.used
    assert row.last_use_of(SECRET_ID) == window


@pytest.mark.parametrize(
    "cases", [LOGINS, FAILURES, REJECTIONS], ids=["logins", "failures", "rejections"]
)
@pytest.mark.django_db
def test_calls_are_counted_together_as_each_alone(cases: Sequence[Case]) -> None:
    now, numbered = datetime.now(UTC), list(enumerate(cases_of_stores(cases), 1))
    calls = [call_of(number, case, now) for number, case in numbered]
    for (number, case), outcome in zip(numbered, perform_together(calls), strict=True):
        assert_counted(case, number, outcome, now)
    stored = {
        call.event.id
        for call, (_, case) in zip(calls, numbered, strict=True)
        if not isinstance(case.outcome, Throttle)
    }
    assert set(LoginEvent.objects.values_list("pk", flat=True)) == stored
    assert 0 < len(stored) < len(calls)


def perform_together(calls: Sequence[Any]) -> list[Any]:
    if connection.vendor == "sqlite":
        return sqlite.perform(calls)
    statement = postgresql.statement_for(calls)
    return statement.parse(fetch(statement.sql, statement.parameters))


def test_reading_a_counter_from_the_store_counts_nothing(erp: Erp) -> None:
    query = FactsQuery(erp.client_id, hash_secret(erp.client_secret), None)
    row = RateLimitCounter.objects.filter(pk=erp.system_user.pk)
    for case in cases_of_stores(LOGINS):
        now = datetime.now(UTC)
        before = moved(case.before[0], now - case.at) or LONG_AGO
        row.update(**before._asdict())
        reading = perform(query)
        assert reading.counter == before, case
        assert now <= reading.at <= datetime.now(UTC)
        quota = current_quota(CounterState(*reading.counter), case.limit, reading.at)
        assert quota.used == quota_before(case).used, case
        assert row.values_list(*CounterState._fields).get() == before, case


# --- Which buckets ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        (None, ""),
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.2", "192.0.2.2"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:0::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
    ],
)
def test_an_address_is_counted_as_itself_or_as_its_network(
    address: str | None, counted_as: str
) -> None:
    assert counted_address(address) == counted_as


HERE, NEIGHBOUR, THERE = "2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:3::1"
KINDS = {
    "pair": lambda buckets, address: buckets.of_pair("ci_test_1", address),
    "address": Buckets.of_address,
    "rejections": Buckets.of_rejections,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_bucket_is_of_the_address_and_an_ipv6_address_of_its_network(kind: str) -> None:
    buckets = Buckets(b"key")
    here, neighbour, there = (KINDS[kind](buckets, each) for each in (HERE, NEIGHBOUR, THERE))
    assert here == neighbour != there
    assert KINDS[kind](buckets, "192.0.2.1") == KINDS[kind](buckets, "::ffff:192.0.2.1")
    assert KINDS[kind](buckets, "192.0.2.1") != KINDS[kind](buckets, "192.0.2.2")
    assert KINDS[kind](Buckets(b"another key"), HERE) != here


def test_each_kind_of_bucket_has_its_own_numbers_and_there_is_no_other_one() -> None:
    buckets = Buckets(b"key")
    assert NUMBER == 65_536
    for number in range(2000):
        address = f"10.0.{number // 256}.{number % 256}"
        pair, of_address = buckets.of_pair("a", address), buckets.of_address(address)
        assert pair % 2 == 0
        assert of_address % 2 == 1
        assert 0 <= pair < 131_072 > of_address > 0
        assert 131_072 <= buckets.of_rejections(address) < 196_608


# --- Values -------------------------------------------------------------------------------------
def test_a_quota_knows_what_remains_and_when_it_resets() -> None:
    assert Quota(3, 1, AT).remaining == 2
    assert Quota(3, 5, AT).remaining == 0
    assert Quota(3, 1, AT).resets_at == END


@pytest.mark.parametrize(
    ("left", "seconds"), [(-3, 1), (0, 1), (0.0001, 1), (1, 1), (1.0001, 2), (59.5, 60)]
)
def test_retry_after_is_rounded_up_to_whole_seconds(left: float, seconds: int) -> None:
    assert Throttle(AT + timedelta(seconds=left)).retry_after_seconds(AT) == seconds


def test_denials_are_dropped_when_they_end_and_never_grow_beyond_their_size() -> None:
    denials = DenialCache(size=2)
    for name in "abc":
        denials.remember(name, Throttle(AT + SECOND))
    assert [denials.find(name, AT) is not None for name in "abc"] == [False, True, True]
    assert denials.find("c", AT + SECOND) is None


def test_a_denial_that_has_ended_takes_no_place_of_another() -> None:
    denials = DenialCache(size=2)
    denials.remember("first", Throttle(END))
    denials.remember("ended", Throttle(AT))
    assert denials.find("ended", AT) is None
    denials.remember("last", Throttle(END))
    assert denials.find("first", AT) == denials.find("last", AT) == Throttle(END)


def test_a_few_clients_come_back_soon_and_not_together() -> None:
    pauses = Pauses(0.0)
    seen = [pauses.next(second) for second in range(300)]
    assert set(seen) == set(range(5, 16))


def test_a_crowd_is_spread_until_about_200_a_second_come_back() -> None:
    """100,000 clients and one process that has no token for any of them for a while."""
    pauses = Pauses(0.0)
    waiting = [number / 5_000 for number in range(100_000)]  # they come within 20 seconds
    came: dict[int, int] = {}
    while waiting[0] < 1_200:
        now = heapq.heappop(waiting)
        came[int(now) // 60] = came.get(int(now) // 60, 0) + 1
        heapq.heappush(waiting, now + pauses.next(now))
    assert max(came[minute] for minute in range(3, 20)) < 60 * 1_000
    assert pauses.next(1_200.0) <= 305
    last = [pauses.next(second) for second in range(1_300, 1_400, 2)][-1]
    assert last <= 15, "as soon as few come they wait no longer than before"


SESSIONS, CALLERS, IN_A_BATCH = 2, 800, 40
# So often a bucket may fail without a pause: then every failure is stored.
ROUNDS = 10 // SESSIONS
# Found after a tenth of a second, not after PostgreSQL's one.
OPTIONS = "-c deadlock_timeout=100ms"

FailureOf = Callable[[int], FailedLogin | RejectedRequest]
each_kind = pytest.mark.parametrize(
    ("kind", "buckets"), [(failed, 2), (rejected, 1)], ids=["failed", "rejected"]
)


def count_together(kind: FailureOf, numbers: Sequence[int]) -> None:
    """Two sessions count these callers, in opposite orders; raises their errors."""
    begin = threading.Barrier(SESSIONS)

    def count(order: Sequence[int]) -> None:
        with (
            suppress(threading.BrokenBarrierError),  # the other one has failed
            psycopg.connect(present_url(), autocommit=True, options=OPTIONS) as session,
        ):
            for _ in range(ROUNDS):
                statement = statement_for([kind(number) for number in order])
                begin.wait(30)
                try:
                    session.execute(statement.sql.encode(), statement.parameters)
                except psycopg.Error:
                    begin.abort()
                    raise

    with ThreadPoolExecutor(SESSIONS) as threads:
        for done in [threads.submit(count, order) for order in (numbers, numbers[::-1])]:
            done.result(60)


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
@each_kind
def test_batches_in_opposite_orders_count_each_caller_once(kind: FailureOf, buckets: int) -> None:
    for first in range(0, CALLERS, IN_A_BATCH):  # others each time, so that none has to wait
        count_together(kind, range(first, first + IN_A_BATCH))
    assert LoginEvent.objects.count() == CALLERS * ROUNDS * SESSIONS
    failures = list(FailureBucket.objects.values_list("failures", flat=True))
    assert failures == [ROUNDS * SESSIONS] * CALLERS * buckets


# --- What every store promises beside counting ----------------------------------------------------


MINUTE = timedelta(minutes=1)


def event_after(seconds: float) -> Event:
    return event(at=datetime.now(UTC) + seconds * SECOND)


def login(
    limit: int = 12, *, client: int = 1, secret_id: int = 5, epoch: int = EPOCH
) -> CountedLogin:
    return CountedLogin(event(), client, secret_id, limit, epoch)


def add_counter(client: int = 1, used: int = 0) -> None:
    """The row that a system user has from its registration on; a window is open if it is used."""
    started_at = datetime.now(UTC) if used else LONG_AGO.window_started_at
    RateLimitCounter.objects.create(
        system_user_id=client, window_started_at=started_at, used=used, epoch=EPOCH
    )


def used(client: int = 1) -> int:
    return RateLimitCounter.objects.get(pk=client).used


def test_a_rejected_request_that_meets_a_pause_as_it_begins_waits_for_one_second() -> None:
    call, now = rejected(7), datetime(2026, 3, 1, 12, tzinfo=UTC)
    rows = [(now, call.event.id, False, None)]
    assert count_rejections([call]).parse(rows) == [Throttle(now + SECOND)]


@pytest.mark.django_db
def test_every_field_of_an_event_is_stored() -> None:
    at = datetime.now(UTC).replace(microsecond=123456)
    for n, address in enumerate(("192.0.2.1", "2001:db8::1", None)):
        stored = Event(
            uuid7(), at, "reason", at - MINUTE, "parameter", "detail \"'%s\\ é", f"client {n}",
            2**40, 2**41, "subject", "actor", "a b", "kid", address, "agent",
        )  # fmt: skip
        perform(RejectedRequest(stored, n))
        row = LoginEvent.objects.get(pk=stored.id)
        assert tuple(getattr(row, name) for name in Event._fields) == stored


@pytest.mark.django_db
@pytest.mark.parametrize("epoch", [-(2**63), -1, 0, 2**63 - 1])
def test_a_login_that_was_decided_from_other_facts_is_not_stored(epoch: int) -> None:
    add_counter()
    RateLimitCounter.objects.update(epoch=epoch)
    other = epoch + 1 if epoch < 0 else epoch - 1
    assert perform(login(epoch=other)) is None
    assert perform(login(client=404, epoch=epoch)) is None  # it has no counter
    assert not LoginEvent.objects.exists()
    assert perform(login(epoch=epoch)) is not None


@pytest.mark.postgresql
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("seconds", "is_stored"), [(-60, False), (-3, False), (-1.5, True), (1.5, True), (3, False)]
)
def test_a_login_that_was_decided_at_another_time_is_not_stored(
    seconds: float, is_stored: bool
) -> None:
    """And its window begins by the clock of the database, not by that of its node."""
    add_counter()
    before = datetime.now(UTC)
    decided = login()._replace(event=event_after(seconds))
    assert (perform(decided) is not None) == is_stored
    assert LoginEvent.objects.count() == used() == is_stored
    began = RateLimitCounter.objects.get().window_started_at
    assert (before <= began <= datetime.now(UTC)) == is_stored


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seconds", [-60, -3, 3])
def test_an_event_of_another_time_is_not_stored_and_nothing_is_counted(seconds: float) -> None:
    late = event_after(seconds)
    for call in (rejected(7)._replace(event=late), failed(0)._replace(event=late)):
        with pytest.raises(IntegrityError):
            perform(call)
    assert not LoginEvent.objects.exists()
    assert not FailureBucket.objects.exists()


@pytest.mark.postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("seconds", [-1.5, 1.5])
@pytest.mark.parametrize("call", [failed(0), rejected(7)])
def test_a_bucket_goes_by_the_clock_of_the_database_not_by_that_of_a_node(
    call: FailedLogin | RejectedRequest, seconds: float
) -> None:
    before = datetime.now(UTC)
    perform(call._replace(event=event_after(seconds)))
    after = datetime.now(UTC)
    for bucket in FailureBucket.objects.all():
        assert before <= bucket.last_at == bucket.retry_at <= after


@pytest.mark.django_db
def test_the_window_of_each_secrets_last_use_is_stored() -> None:
    add_counter()

    def log_in(secret_id: int) -> dict[str, datetime]:
        assert perform(login(0, secret_id=secret_id)) is not None
        uses = RateLimitCounter.objects.get().secrets_used
        return {key: datetime.fromisoformat(began_at) for key, began_at in uses.items()}

    def window() -> datetime:
        return RateLimitCounter.objects.get().window_started_at

    assert log_in(5) == {"5": window()}
    first = window()
    assert log_in(5) == {"5": first}
    assert log_in(6) == {"5": first, "6": first}
    RateLimitCounter.objects.update(window_started_at=first - MINUTE)
    assert log_in(6) == {"5": first, "6": window()}
    assert window() > first
    # A secret that was unused for long does not look unused because another one began the window.
    assert log_in(5) == {"5": window(), "6": window()}


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [1, 2])
def test_a_refused_login_counts_and_is_no_use_of_its_secret(at_once: int) -> None:
    add_counter()

    def log_in(reason: str) -> datetime | None:
        logins = [login(secret_id=5) for _ in range(at_once)]
        logins = [one._replace(event=one.event._replace(reason=reason)) for one in logins]
        assert None not in perform_together(logins)
        return RateLimitCounter.objects.get().last_use_of(5)

    assert log_in("system_user_blocked") is None
    assert used() == at_once
    first = log_in("")
    assert first is not None
    RateLimitCounter.objects.update(window_started_at=first - 2 * MINUTE)
    assert log_in("invalid_scope") == first  # in a later window
    assert log_in("") == RateLimitCounter.objects.get().window_started_at


@pytest.mark.django_db
def test_of_a_batch_each_login_is_stored_or_not_by_itself() -> None:
    logins = [login(client=n, epoch=EPOCH + (n == 2), limit=3) for n in (4, 2, 3, 1)]
    for n in (1, 2, 4):
        add_counter(n, used=3 if n == 4 else 0)
    outcomes = perform_together(logins)
    assert [outcome and outcome.used for outcome in outcomes] == [None, None, None, 1]
    assert list(LoginEvent.objects.values_list("pk", flat=True)) == [logins[-1].event.id]
    assert [used(n) for n in (1, 2, 4)] == [1, 0, 3]


@pytest.mark.django_db
def test_several_logins_of_a_client_begin_its_next_window() -> None:
    add_counter(used=12)
    RateLimitCounter.objects.update(window_started_at=datetime.now(UTC) - 2 * MINUTE)
    outcomes = perform_together([login(2), login(2), login(2)])
    assert [outcome and outcome.used for outcome in outcomes] == [1, 2, None]
    row = RateLimitCounter.objects.get()
    assert row.used == 2
    assert row.window_started_at > datetime.now(UTC) - MINUTE
    assert row.last_use_of(5) == row.window_started_at


@pytest.mark.django_db(transaction=True)
def test_events_and_their_counts_are_stored_together_or_not_at_all() -> None:
    for client in (1, 2):
        add_counter(client)
    stored = event()
    perform(RejectedRequest(stored, 5))  # so that a second event with its id is refused
    for good, bad in (
        (login(client=1), login(client=2)),
        (failed(0), failed(1)),
        (rejected(6), rejected(7)),
    ):
        for calls in ([bad._replace(event=stored)], [good, bad._replace(event=stored)]):
            with pytest.raises(IntegrityError):
                perform_together(calls)
    assert LoginEvent.objects.count() == 1
    assert (used(1), used(2)) == (0, 0)
    assert list(FailureBucket.objects.values_list("pk", "failures")) == [(5, 1)]
