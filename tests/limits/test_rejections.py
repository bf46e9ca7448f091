"""An address that has to wait: each of its requests is answered with 429, and nothing is written.

Contract 1, Limits; through Django and on the event loop, on both databases. Which refusals count,
and where: tests/endpoint/test_refusals.py and tests/facts/test_steps.py.
"""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from tests.endpoint.test_event_loop import Sent
from tests.endpoint.test_refusals import as_response
from tests.support.erp import assert_refused
from tests.wire.test_answers import Send, both, committed
from tokens.models import FailureBucket, LoginEvent, ThrottledCaller
from tokens.operations.recording import buckets

pytestmark = [committed, both]

HERE, THERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture(autouse=True)
def _behind_a_proxy(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    settings.AUTH_URL = "https://identity.example.org"


def malformed(address: str = HERE) -> Sent:
    return Sent(b"a=%zz", headers={"X-Forwarded-For": address, "X-Forwarded-Proto": "https"})


def begin_pause() -> datetime:
    """As after so many rejected requests that the longest pause has begun; returns its end."""
    now = datetime.now(UTC)
    ends_at = now + timedelta(seconds=30)
    FailureBucket.objects.create(
        pk=buckets().of_rejections(HERE), failures=506, last_at=now, retry_at=ends_at
    )
    return ends_at


def contents() -> dict[str, list[str]]:
    """Every row of every table but one, which has a row for each hour."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - a table of ours
            found[table] = sorted(map(str, cursor.fetchall()))
    del found["throttled_callers"]
    return found


def test_a_throttled_request_is_answered_with_429_and_writes_nothing(send: Send) -> None:
    send(malformed(THERE))  # the first request of all makes the signing key
    assert LoginEvent.objects.get().reason == "malformed_request", "the proxy may say HTTPS"
    begin_pause()
    before = contents()
    assert [send(malformed()).status for _ in range(3)] == [429] * 3
    assert contents() == before
    assert ThrottledCaller.objects.filter(source=HERE).count() <= 1


def test_the_answer_says_why_and_until_when(send: Send) -> None:
    ends_at = begin_pause()
    for _ in range(2):  # by the database, and remembered
        assert_refused(
            as_response(send(malformed())),
            reason="rate_limited",
            says="Too many requests from this address were refused",
            fixed_by="developer of the ERP system",
            headers={
                "Retry-After": r"[1-9]|[12]\d|30",
                "X-Rate-Limit-Limit": "1",
                "X-Rate-Limit-Remaining": "0",
                "X-Rate-Limit-Reset": f"{ends_at:%Y-%m-%dT%H:%M:%SZ}",
            },
        )
