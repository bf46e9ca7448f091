"""What every store of login events promises beside counting (contract 1 and 5)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError
from uuid_utils.compat import uuid7

from taxpayers.models import RateLimitCounter
from tests.lanes.calls import event, failed, rejected
from tests.tokens.rate_limit_cases import SECOND
from tests.tokens.test_rate_limits import EPOCH, LONG_AGO, perform_together
from tokens.calls import CountedLogin, Event, FailedLogin, RejectedRequest
from tokens.models import FailureBucket, LoginEvent
from tokens.rate_limits.throttle import Throttle
from tokens.store.django_store import perform
from tokens.store.postgresql_buckets import count_rejections

MINUTE = timedelta(minutes=1)


def event_after(seconds: float) -> Event:
    """One that was decided so much later than now."""
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
    add_counter()
    decided = login()._replace(event=event_after(seconds))
    assert (perform(decided) is not None) == is_stored
    assert LoginEvent.objects.count() == used() == is_stored


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
def test_a_refused_login_counts_and_is_no_use_of_its_secret() -> None:
    add_counter()

    def log_in(reason: str) -> datetime | None:
        decided = login(secret_id=5)
        decided = decided._replace(event=decided.event._replace(reason=reason))
        assert perform(decided) is not None
        return RateLimitCounter.objects.get().last_use_of(5)

    assert log_in("system_user_blocked") is None
    assert used() == 1
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
