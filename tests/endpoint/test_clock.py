"""The database's clock counts: a node with a wrong clock can neither void a limit nor a date."""

import json
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock, patch

import pytest
from django.db import connection
from django.http import HttpResponse

from taxpayers.credentials import new_client_secret
from taxpayers.models import RateLimitCounter
from tests.support.erp import Erp, assert_refused, claims_of
from tokens.endpoint import arrival, clock, toolkit
from tokens.endpoint.clock import difference
from tokens.models import FailureBucket

SECOND = timedelta(seconds=1)
AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
on_postgresql = pytest.mark.postgresql  # SQLite runs in this process and has no other clock


@pytest.mark.parametrize(
    ("database", "seconds"),
    [
        (AT, 0),
        (AT + SECOND, 0),  # during the query
        (AT + 5 * SECOND, 0),
        (AT + 8 * SECOND, 3),
        (AT - 4 * SECOND, -4),
    ],
)
def test_a_difference_is_what_the_duration_of_the_query_does_not_explain(
    database: datetime, seconds: int
) -> None:
    assert difference(AT, database, AT + 5 * SECOND) == seconds * SECOND


def log_in_with_a_clock_off_by(off: timedelta, erp: Erp, **form: str) -> HttpResponse:
    """A login on a node whose clock is ahead by so much, or behind."""
    now = Mock(now=lambda _tz: datetime.now(UTC) + off)
    with patch.object(arrival, "datetime", now), patch.object(toolkit, "datetime", now):
        return erp.login(**form)


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_node_with_a_wrong_clock_refuses_instead_of_deciding(erp: Erp, minutes: int) -> None:
    erp.login()
    response = log_in_with_a_clock_off_by(timedelta(minutes=minutes), erp)
    assert_refused(
        response,
        reason="temporarily_unavailable",
        status=503,
        error="temporarily_unavailable",
        says="try again",
        mended_by="Nothing is wrong with the request",
        headers={"Retry-After": r"\d+"},
    )


@on_postgresql
@pytest.mark.django_db
def test_a_small_difference_is_no_reason_to_refuse_and_the_token_has_the_databases_time(
    erp: Erp,
) -> None:
    for seconds in (-1.9, 1.9):
        before = int(datetime.now(UTC).timestamp())
        response = log_in_with_a_clock_off_by(timedelta(seconds=seconds), erp)
        assert before <= claims_of(response)["iat"] <= datetime.now(UTC).timestamp()


@on_postgresql
@pytest.mark.django_db
def test_a_clock_that_is_off_neither_opens_nor_prolongs_the_window_of_a_limit(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "MAX_DIFFERENCE", timedelta(hours=1))
    allowed = 0
    for seconds in (0, 90, -90, 3000) * 4:
        response = log_in_with_a_clock_off_by(timedelta(seconds=seconds), erp)
        allowed += response.status_code == 200
    assert allowed == 12
    began = RateLimitCounter.objects.get().window_started_at
    assert abs(began - datetime.now(UTC)) < 10 * SECOND


@on_postgresql
@pytest.mark.django_db
def test_failures_back_off_by_the_databases_clock(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "MAX_DIFFERENCE", timedelta(hours=1))
    wrong = new_client_secret("test")
    response = log_in_with_a_clock_off_by(timedelta(minutes=30), erp, client_secret=wrong)
    assert json.loads(response.content)["error"] == "invalid_client"
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        (database,) = cursor.fetchone()
    assert all(abs(b.last_at - database) < 10 * SECOND for b in FailureBucket.objects.all())
