"""Limits: each rule once as a case, for the pure function and for the store of this database."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from taxpayers.credentials import hash_secret
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from taxpayers.sql import fetch
from tests.support.erp import Erp
from tests.tokens.rate_limit_cases import (
    AT,
    END,
    FAILURES,
    LOGINS,
    REJECTIONS,
    SECOND,
    FailureCase,
    LoginCase,
    RejectionCase,
    cases_of_stores,
    is_sure,
    moved,
)
from tokens.calls import CountedLogin, Event, FailedLogin, RejectedRequest
from tokens.models import FailureBucket, LoginEvent
from tokens.rate_limits.backoff import Backoff, BucketState, count_failure, count_rejection
from tokens.rate_limits.buckets import NUMBER, Buckets, counted_address
from tokens.rate_limits.denial_cache import DenialCache
from tokens.rate_limits.quota import CounterState, Quota, count_login, current_quota
from tokens.rate_limits.throttle import Throttle
from tokens.store import postgresql, sqlite
from tokens.store.django_store import perform

LONG_AGO = CounterState(datetime(1970, 1, 1, tzinfo=UTC), 0)  # of a client that never logged in
EPOCH, SECRET_ID = 77, 5


def each(cases: Sequence[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.claim for case in cases])


def test_cases_of_stores_are_sure_and_none_is_lost() -> None:
    for cases in (LOGINS, FAILURES, REJECTIONS):
        of_stores = cases_of_stores(cases)
        assert all(is_sure(case) for case in of_stores)
        outcomes = {str(case.essence) for case in of_stores}
        assert {str(case.essence) for case in cases} <= outcomes


# --- A login and the counter of its client ------------------------------------------------------


@each(LOGINS)
def test_a_login_is_counted_by_the_pure_function(case: LoginCase) -> None:
    assert count_login(case.before, case.limit, case.at) == case.outcome


def quota_before(case: LoginCase) -> Quota:
    """The quota that this login meets: one login less than what counting it gives."""
    if isinstance(case.outcome, Throttle):
        return Quota(case.limit, case.after.used, case.after.window_started_at)
    return Quota(case.limit, case.outcome.used - 1, case.outcome.window_started_at)


@each(LOGINS)
def test_reading_a_quota_counts_nothing(case: LoginCase) -> None:
    assert current_quota(case.before, case.limit, case.at) == quota_before(case)


def event(at: datetime) -> Event:
    return Event(uuid7(), at, "", None, "", "", "c", None, None, "", "", "", "", "127.0.0.1", "")


def login(client: int, case: LoginCase, now: datetime) -> CountedLogin:
    """The login of a case that happens now, with the counter of its client as it was before."""
    before = moved(case.before, now - case.at) or LONG_AGO
    RateLimitCounter.objects.create(system_user_id=client, epoch=EPOCH, **before._asdict())
    return CountedLogin(event(now), client, SECRET_ID, case.limit, EPOCH)


def assert_counted(case: LoginCase, client: int, outcome: Quota | None, now: datetime) -> None:
    """As the case says, with its moments moved to now, when the store counted it."""
    row = RateLimitCounter.objects.get(pk=client)
    by = now - case.at
    if isinstance(case.outcome, Throttle):
        assert outcome is None
        assert (row.window_started_at, row.used) == moved(case.after, by)
        return
    window = row.window_started_at
    if case.begins_window:
        assert now <= window < now + SECOND
    else:
        assert window == case.outcome.window_started_at + by
    assert outcome == Quota(case.limit, case.outcome.used, window)
    assert row.used == case.outcome.used
    assert row.last_use_of(SECRET_ID) == window


@each(cases_of_stores(LOGINS))
@pytest.mark.django_db
def test_a_login_is_counted_by_the_store(case: LoginCase) -> None:
    now = datetime.now(UTC)
    outcome = perform(login(1, case, now))
    assert_counted(case, 1, outcome, now)
    assert LoginEvent.objects.count() == (outcome is not None)


@pytest.mark.django_db
def test_logins_are_counted_together_as_each_alone() -> None:
    now, cases = datetime.now(UTC), list(enumerate(cases_of_stores(LOGINS), 1))
    logins = [login(client, case, now) for client, case in cases]
    outcomes = perform_together(logins)
    for (client, case), outcome in zip(cases, outcomes, strict=True):
        assert_counted(case, client, outcome, now)
    stored = {one.event.id for one, outcome in zip(logins, outcomes, strict=True) if outcome}
    assert set(LoginEvent.objects.values_list("pk", flat=True)) == stored
    assert 0 < len(stored) < len(logins)


def perform_together(calls: Sequence[Any]) -> list[Any]:
    """In one statement, or one transaction."""
    if connection.vendor == "sqlite":
        return sqlite.perform(calls)
    statement = postgresql.statement_for(calls)
    return statement.parse(fetch(statement.sql, statement.parameters))


@each(cases_of_stores(LOGINS))
@pytest.mark.django_db
def test_reading_a_counter_from_the_store_counts_nothing(erp: Erp, case: LoginCase) -> None:
    now = datetime.now(UTC)
    before = moved(case.before, now - case.at) or LONG_AGO
    row = RateLimitCounter.objects.filter(pk=erp.system_user.pk)
    row.update(**before._asdict())
    for _ in range(2):
        reading = perform(FactsQuery(erp.client_id, hash_secret(erp.client_secret), None))
        assert reading.counter == before
        assert now <= reading.at < now + SECOND
        quota = current_quota(CounterState(*reading.counter), case.limit, reading.at)
        assert quota.used == quota_before(case).used
    assert row.values_list(*CounterState._fields).get() == before


# --- A failure and its two buckets --------------------------------------------------------------


@each(FAILURES)
def test_a_failure_is_counted_by_the_pure_function(case: FailureCase) -> None:
    outcome = count_failure(case.pair, case.address, case.at)
    assert outcome == (case.outcome or case.after)


def failure(number: int, case: FailureCase, now: datetime) -> FailedLogin:
    """The failure of a case that happens now, with its two buckets as they were before."""
    pair, address = 2 * number, 2 * number + 1
    for pk, state in ((pair, case.pair), (address, case.address)):
        if state is not None:
            before = moved(state, now - case.at)
            FailureBucket.objects.create(pk=pk, **before._asdict())
    return FailedLogin(event(now), pair, address)


def assert_failure_counted(
    case: FailureCase, number: int, outcome: Throttle | None, now: datetime
) -> None:
    """As the case says, with its moments moved to now, when the store counted it."""
    rows = FailureBucket.objects.filter(pk__in=(2 * number, 2 * number + 1)).order_by("pk")
    stored = {
        pk: BucketState(*state) for pk, *state in rows.values_list("pk", *BucketState._fields)
    }
    by = now - case.at
    if case.outcome is None:
        assert outcome is None
        counted_at = stored[2 * number].last_at
        assert now <= counted_at < now + SECOND
        by = counted_at - case.at
    else:
        assert outcome == Throttle(case.outcome.retry_at + by)
    after = (moved(state, by) for state in case.after)
    assert stored == {pk: state for pk, state in enumerate(after, 2 * number) if state is not None}


@each(cases_of_stores(FAILURES))
@pytest.mark.django_db
def test_a_failure_is_counted_by_the_store(case: FailureCase) -> None:
    now = datetime.now(UTC)
    outcome = perform(failure(0, case, now))
    assert_failure_counted(case, 0, outcome, now)
    assert LoginEvent.objects.count() == (outcome is None)


@pytest.mark.django_db
def test_failures_are_counted_together_as_each_alone() -> None:
    now, cases = datetime.now(UTC), list(enumerate(cases_of_stores(FAILURES)))
    failures = [failure(number, case, now) for number, case in cases]
    outcomes = perform_together(failures)
    for (number, case), outcome in zip(cases, outcomes, strict=True):
        assert_failure_counted(case, number, outcome, now)
    stored = {one.event.id for one, out in zip(failures, outcomes, strict=True) if out is None}
    assert set(LoginEvent.objects.values_list("pk", flat=True)) == stored
    assert 0 < len(stored) < len(failures)


# --- A rejected request and its bucket ----------------------------------------------------------


@each(REJECTIONS)
def test_a_rejected_request_is_counted_by_the_pure_function(case: RejectionCase) -> None:
    assert count_rejection(case.before, case.at) == (case.outcome or case.after)


def rejection(bucket: int, case: RejectionCase, now: datetime) -> RejectedRequest:
    """The request of a case that happens now, with its bucket as it was before."""
    before = moved(case.before, now - case.at)
    if before is not None:
        FailureBucket.objects.create(pk=bucket, **before._asdict())
    return RejectedRequest(event(now), bucket)


def assert_rejection_counted(
    case: RejectionCase, bucket: int, outcome: Throttle | None, now: datetime
) -> None:
    """As the case says, with its moments moved to now, when the store counted it."""
    (stored,) = FailureBucket.objects.filter(pk=bucket).values_list(*BucketState._fields)
    by = now - case.at
    if case.outcome is None:
        assert outcome is None
        counted_at = BucketState(*stored).last_at
        assert now <= counted_at < now + SECOND
        by = counted_at - case.at
    else:
        assert outcome == Throttle(case.outcome.retry_at + by)
    assert stored == moved(case.after, by)


@each(cases_of_stores(REJECTIONS))
@pytest.mark.django_db
def test_a_rejected_request_is_counted_by_the_store(case: RejectionCase) -> None:
    now = datetime.now(UTC)
    outcome = perform(rejection(7, case, now))
    assert_rejection_counted(case, 7, outcome, now)
    assert LoginEvent.objects.count() == (outcome is None)


@pytest.mark.django_db
def test_rejected_requests_are_counted_together_as_each_alone() -> None:
    now, cases = datetime.now(UTC), list(enumerate(cases_of_stores(REJECTIONS)))
    requests = [rejection(bucket, case, now) for bucket, case in cases]
    outcomes = perform_together(requests)
    for (bucket, case), outcome in zip(cases, outcomes, strict=True):
        assert_rejection_counted(case, bucket, outcome, now)
    stored = {one.event.id for one, out in zip(requests, outcomes, strict=True) if out is None}
    assert set(LoginEvent.objects.values_list("pk", flat=True)) == stored
    assert 0 < len(stored) < len(requests)


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


def test_the_bucket_of_a_pair_is_of_both() -> None:
    buckets = Buckets(b"key")
    of = {buckets.of_pair(id_, address) for id_ in "ab" for address in (HERE, THERE)}
    assert len(of) == 4


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


def test_pauses_double_up_to_the_cap() -> None:
    assert Backoff(free=2, cap_seconds=10).pauses_seconds == (0, 0, 1, 2, 4, 8, 10)
    assert Backoff(free=0, cap_seconds=8).pauses_seconds == (1, 2, 4, 8)
    assert Backoff(free=1, cap_seconds=1).pauses_seconds == (0, 1)


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


def test_a_denial_is_for_failures_and_for_nobody_known_unless_it_says_so() -> None:
    assert (Throttle(AT).limit, Throttle(AT).secret_expires_at) == (0, None)


def test_a_process_remembers_4096_denials() -> None:
    denials = DenialCache()
    for name in range(5000):
        denials.remember(name, Throttle(END))
    assert len(denials) == 4096
    assert [name for name in range(5000) if denials.find(name, AT)] == list(range(904, 5000))
