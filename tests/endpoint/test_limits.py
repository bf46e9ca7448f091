"""Limits: exact for authenticated logins, exponential for failures (contract 1, Limits)."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.http import HttpResponse
from uuid_utils.compat import uuid7

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from tests.support.erp import Erp, new_erp
from tokens.endpoint import recording as audit
from tokens.login_events.entries import CountedLogin, Event, FailedLogin
from tokens.login_events.store import LoginEventStore, login_event_store
from tokens.models import FailureBucket, LoginEvent
from tokens.rate_limits.limits import (
    ADDRESS_BACKOFF,
    PAIR_BACKOFF,
    Backoff,
    DenialCache,
    Quota,
    Throttle,
    is_open,
)

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


# --- Arithmetic ---------------------------------------------------------------------------------


def test_an_quota_is_used_up_at_its_limit() -> None:
    assert not Quota(2, 1, AT).is_used_up
    assert Quota(2, 2, AT).is_used_up
    assert Quota(2, 2, AT).remaining == 0
    assert Quota(2, 1, AT).resets_at == AT + 60 * SECOND


def test_a_limit_of_zero_is_never_used_up() -> None:
    assert not Quota(0, 10**6, AT).is_used_up


def test_a_minute_is_open_for_sixty_seconds_whichever_clock_is_ahead() -> None:
    assert is_open(AT, AT)
    assert is_open(AT, AT + 60 * SECOND - timedelta(microseconds=1))
    assert not is_open(AT, AT + 60 * SECOND)
    assert is_open(AT + 2 * SECOND, AT)
    assert not is_open(AT + 60 * SECOND, AT)


def test_pauses_double_up_to_the_cap() -> None:
    assert Backoff(free=2, cap_seconds=10).pauses_seconds == (0, 0, 1, 2, 4, 8, 10)


@pytest.mark.parametrize(("left", "seconds"), [(0.0001, 1), (1, 1), (1.0001, 2), (59.5, 60)])
def test_retry_after_is_rounded_up_to_whole_seconds(left: float, seconds: int) -> None:
    assert Throttle(AT + timedelta(seconds=left)).retry_after_seconds(AT) == seconds


def test_denials_are_forgotten_when_they_end_and_never_grow_beyond_their_size() -> None:
    denials = DenialCache(size=2)
    for name in "abc":
        denials.remember(name, Throttle(AT + SECOND))
    assert [denials.find(name, AT) is not None for name in "abc"] == [False, True, True]
    assert denials.find("c", AT + SECOND) is None


# --- The ledger, whichever database it is ---------------------------------------------------------


def event(at: datetime = AT) -> Event:
    return Event(uuid7(), at, "", "", "c", None, None, "", "", "", "", "127.0.0.1", "")


def counted(limit: int, at: datetime = AT, secret_id: int = 5) -> CountedLogin:
    return CountedLogin(1, secret_id, limit, at)


@pytest.fixture
def kept(db: None) -> LoginEventStore:
    return login_event_store()


def test_exactly_the_limit_is_allowed_in_a_minute_and_again_in_the_next(
    kept: LoginEventStore,
) -> None:
    def used(at: datetime) -> int | None:
        outcome = kept.add_counted(event(at), counted(3, at))
        return outcome.used if isinstance(outcome, Quota) else None

    assert [used(AT + n * SECOND) for n in range(5)] == [1, 2, 3, None, None]
    assert LoginEvent.objects.count() == 3
    assert used(AT + timedelta(seconds=59, microseconds=999_999)) is None
    assert used(AT + 60 * SECOND) == 1


def test_a_denial_says_when_the_minute_is_over(kept: LoginEventStore) -> None:
    kept.add_counted(event(), counted(1))
    denial = kept.add_counted(event(), counted(1, AT + 7 * SECOND))
    assert denial == Throttle(AT + 60 * SECOND, 1)


def test_observe_only_counts_and_never_denies(kept: LoginEventStore) -> None:
    outcomes = [kept.add_counted(event(), counted(0)) for _ in range(30)]
    assert [o.used for o in outcomes if isinstance(o, Quota)] == list(range(1, 31))


def test_a_node_whose_clock_is_behind_counts_in_the_same_minute(kept: LoginEventStore) -> None:
    kept.add_counted(event(), counted(2))
    outcome = kept.add_counted(event(), counted(2, AT - 2 * SECOND))
    assert outcome == Quota(2, 2, AT)


def test_the_minute_of_each_secrets_last_use_is_kept(kept: LoginEventStore) -> None:
    def login(secret_id: int, at: datetime) -> dict[str, datetime]:
        kept.add_counted(event(at), counted(0, at, secret_id))
        used = RateLimitCounter.objects.get().secrets_used
        return {key: datetime.fromisoformat(began_at) for key, began_at in used.items()}

    later, next_day = AT + 7 * SECOND, AT + timedelta(days=1)
    assert login(5, AT) == {"5": AT}
    assert login(5, later) == {"5": AT}
    assert login(6, later) == {"5": AT, "6": AT}
    assert login(6, next_day) == {"5": AT, "6": next_day}
    # A secret that was idle for long is not taken for idle because another one began the minute.
    assert login(5, next_day + SECOND) == {"5": next_day, "6": next_day}


def test_a_denied_login_is_no_use_of_its_secret(kept: LoginEventStore) -> None:
    kept.add_counted(event(), counted(1, secret_id=5))
    kept.add_counted(event(), counted(1, secret_id=6))
    assert list(RateLimitCounter.objects.get().secrets_used) == ["5"]


def test_looking_at_an_quota_counts_nothing(kept: LoginEventStore) -> None:
    assert kept.quota(1, 3, AT) == Quota(3, 0, AT)
    kept.add_counted(event(), counted(3))
    assert kept.quota(1, 3, AT) == Quota(3, 1, AT)
    assert kept.quota(1, 3, AT + 60 * SECOND).used == 0


def test_failures_of_one_caller_are_heard_later_and_later(kept: LoginEventStore) -> None:
    at, pauses = AT, []
    for n in range(PAIR_BACKOFF.free + 4):
        assert kept.add_failed(event(at), FailedLogin(0, 2 * n + 1, at)) is None
        bucket = FailureBucket.objects.get(id=0)
        pauses.append((bucket.retry_at - at).total_seconds())
        at = bucket.retry_at
    assert pauses == [0] * PAIR_BACKOFF.free + [1, 2, 4, 8]


def test_a_failure_without_a_pause_never_denies_a_clock_that_is_behind(
    kept: LoginEventStore,
) -> None:
    assert kept.add_failed(event(), FailedLogin(0, 1, AT)) is None
    assert kept.add_failed(event(), FailedLogin(0, 1, AT - SECOND)) is None


def test_a_failure_too_many_is_not_recorded(kept: LoginEventStore) -> None:
    FailureBucket.objects.create(id=0, failures=12, last_at=AT, retry_at=AT + SECOND)
    assert kept.add_failed(event(), FailedLogin(0, 1, AT)) == Throttle(AT + SECOND)
    assert kept.add_failed(event(), FailedLogin(2, 1, AT)) is None
    assert LoginEvent.objects.count() == 1


def test_an_address_that_fails_for_whatever_ids_has_to_wait_too(kept: LoginEventStore) -> None:
    for n in range(ADDRESS_BACKOFF.free + 1):
        assert kept.add_failed(event(), FailedLogin(2 * n, 1, AT)) is None
    assert kept.add_failed(event(), FailedLogin(9998, 1, AT)) == Throttle(AT + SECOND)
    assert kept.add_failed(event(), FailedLogin(9998, 3, AT)) is None


def test_failures_are_forgotten_after_an_hour_of_peace(kept: LoginEventStore) -> None:
    FailureBucket.objects.create(id=0, failures=15, last_at=AT, retry_at=AT + SECOND)
    later = AT + timedelta(hours=1, seconds=1)
    assert kept.add_failed(event(later), FailedLogin(0, 1, later)) is None
    assert FailureBucket.objects.get(id=0).failures == 1


@pytest.mark.django_db(transaction=True)
def test_many_threads_get_exactly_the_limit(kept: LoginEventStore) -> None:
    def log_in(_: int) -> bool:
        try:
            return isinstance(kept.add_counted(event(), counted(12)), Quota)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        allowed = sum(threads.map(log_in, range(40)))
    assert allowed == 12
    assert LoginEvent.objects.count() == 12


# --- The login ------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_failures_back_off_but_the_right_secret_is_always_heard(erp: Erp) -> None:
    wrong = new_client_secret("test")
    answers = [erp.login(client_secret=wrong) for _ in range(PAIR_BACKOFF.free + 2)]
    assert [a.status_code for a in answers] == [400] * (PAIR_BACKOFF.free + 1) + [429]
    assert answers[-1]["Retry-After"] == "1"
    assert json.loads(answers[-1].content)["error"] == "invalid_request"
    right = erp.login()
    assert right.status_code == 200
    assert right["X-Rate-Limit-Remaining"] == "11"


@pytest.mark.django_db
def test_failures_of_unknown_and_known_ids_back_off_alike(erp: Erp) -> None:
    wrong, unknown = new_client_secret("test"), new_client_id("test")

    def statuses(**form: str) -> list[int]:
        return [erp.login(client_secret=wrong, **form).status_code for _ in range(13)]

    assert statuses() == statuses(client_id=unknown)


@pytest.mark.django_db
def test_a_back_off_says_what_was_wrong_and_to_whom(erp: Erp) -> None:
    def backed_off(**form: str) -> HttpResponse:
        secret = new_client_secret("test")
        answers = [erp.login(client_secret=secret, **form) for _ in range(PAIR_BACKOFF.free + 2)]
        return answers[-1]

    def told(response: HttpResponse) -> str:
        text: str = json.loads(response.content)["error_description"]
        return text.split(" Reference: ")[0]

    answer, of_unknown = backed_off(), backed_off(client_id=new_client_id("test"))
    assert told(answer) == told(of_unknown)
    assert "Too many failed logins" in told(answer)
    assert "operator of the ERP system must compare client_id and client_secret" in told(answer)
    assert "reuse" not in told(answer)
    for response in (answer, of_unknown):
        assert response.status_code == 429
        assert response.reason_phrase == json.loads(response.content)["error"] == "invalid_request"
        assert response["Retry-After"] == "1"
        # One failed login is heard after each pause.
        assert response["X-Rate-Limit-Limit"] == "1"
        assert response["X-Rate-Limit-Remaining"] == "0"
        assert "X-Rate-Limit-Reset" in response


@pytest.mark.django_db
def test_failures_write_to_a_table_of_a_fixed_size(erp: Erp) -> None:
    for _ in range(20):
        erp.login(client_id=new_client_id("test"))
    assert FailureBucket.objects.count() <= 21
    assert max(FailureBucket.objects.values_list("id", flat=True)) < 2 * audit._BUCKETS
    assert RateLimitCounter.objects.count() == 0


@pytest.mark.django_db
def test_each_client_has_its_own_limit() -> None:
    for limit in (2, 30):
        erp = new_erp(logins_per_minute=limit)
        statuses = [erp.login().status_code for _ in range(limit + 1)]
        assert statuses == [200] * limit + [429]


@pytest.mark.django_db
def test_a_client_without_a_limit_is_told_none() -> None:
    response = new_erp(logins_per_minute=0).login()
    assert response.status_code == 200
    assert "X-Rate-Limit-Limit" not in response
    assert RateLimitCounter.objects.get().used == 1


@pytest.mark.django_db
def test_the_limit_is_told_before_the_block(blocked: Erp) -> None:
    statuses = [blocked.login().status_code for _ in range(13)]
    assert statuses == [400] * 12 + [429]
