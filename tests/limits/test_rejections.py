"""Requests that nobody could log in with: each counts for its address, and none fills the database.

Contract 1, Limits; through Django and on the event loop, on both databases.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from taxpayers.credentials import new_client_secret
from tests.endpoint.test_event_loop import Answer, Sent, answers_to, through_django
from tokens.models import FailureBucket, LoginEvent, ThrottledCaller
from tokens.operations.recording import buckets

# The connections of the event loop see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

Driver = Callable[[Sequence[Sent]], list[Answer]]
SECOND = timedelta(seconds=1)
HERE, THERE = "192.0.2.1", "192.0.2.2"
CUT_OFF = new_client_secret("test")[:-1]
SECRET = new_client_secret("test")
FORM = f"grant_type=client_credentials&client_id=ci_test_x&client_secret={SECRET}"
REJECTED = {
    "method_not_allowed": Sent(b"", method="PUT"),
    "insecure_transport": Sent(FORM.encode(), headers={"X-Forwarded-Proto": "http"}),
    "malformed_request": Sent(b"a=%zz"),
    "missing_parameter": Sent(b"grant_type=client_credentials"),
    "unsupported_grant_type": Sent(FORM.replace("client_credentials", "password").encode()),
    "malformed_on_behalf_of": Sent(FORM.encode(), headers={"onbehalfof": "?"}),
    "malformed_credentials": Sent(FORM.replace(SECRET, CUT_OFF).encode()),
}
MALFORMED = REJECTED["malformed_request"]


def one_after_the_other(requests: Sequence[Sent]) -> list[Answer]:
    return [through_django(sent) for sent in requests]


DRIVERS: dict[str, Driver] = {"Django": one_after_the_other, "event loop": answers_to}
each_driver = pytest.mark.parametrize("answers", DRIVERS.values(), ids=DRIVERS)


@pytest.fixture(autouse=True)
def _behind_a_proxy(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    settings.AUTH_URL = "https://identity.example.org"


def from_(address: str, sent: Sent) -> Sent:
    headers = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
    return replace(sent, headers=headers | sent.headers)


def bucket(address: str = HERE) -> FailureBucket:
    return FailureBucket.objects.get(pk=buckets().of_rejections(address))


def begin_pause(address: str = HERE) -> None:
    """As after so many rejected requests that the longest pause has begun."""
    now = datetime.now(UTC)
    FailureBucket.objects.create(
        pk=buckets().of_rejections(address),
        failures=506,
        last_at=now,
        retry_at=now + 30 * SECOND,
    )


def contents() -> dict[str, list[str]]:
    """Every row of every table."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - a table of ours
            found[table] = sorted(map(str, cursor.fetchall()))
    return found


def statuses(answers: Sequence[Answer]) -> list[int]:
    return [answer.status for answer in answers]


@each_driver
def test_every_refusal_before_authentication_counts_for_its_address(answers: Driver) -> None:
    for number, (reason, sent) in enumerate(REJECTED.items(), 1):
        answers([from_(HERE, sent), from_(THERE, sent), from_(HERE, sent)])
        assert LoginEvent.objects.filter(reason=reason).count() == 3
        assert (bucket(HERE).failures, bucket(THERE).failures) == (2 * number, number)
    assert LoginEvent.objects.count() == 3 * len(REJECTED)
    assert FailureBucket.objects.count() == 2


@each_driver
def test_a_throttled_request_is_answered_with_429_and_writes_nothing(answers: Driver) -> None:
    answers([from_(THERE, MALFORMED)])  # the first request of all makes the signing key
    for number, sent in enumerate(REJECTED.values()):
        address = f"198.51.100.{number}"  # none of them is remembered
        begin_pause(address)
        before = contents()
        assert statuses(answers([from_(address, sent)] * 3)) == [429] * 3
        assert contents() | {"throttled_callers": []} == before | {"throttled_callers": []}
        assert ThrottledCaller.objects.filter(source=address).count() <= 1  # for each hour


@each_driver
def test_the_answer_says_why_and_until_when(answers: Driver) -> None:
    begin_pause()
    ends_at = bucket().retry_at
    for answer in answers([from_(HERE, MALFORMED)] * 2):  # by the database, and remembered
        body = json.loads(answer.body)
        assert (answer.reason, body["error"]) == ("invalid_request", "invalid_request")
        assert "Too many requests from this address were refused" in body["error_description"]
        assert "developer of the ERP system" in body["error_description"]
        headers = answer.headers
        assert 1 <= int(headers["Retry-After"]) <= 30
        assert (headers["X-Rate-Limit-Limit"], headers["X-Rate-Limit-Remaining"]) == ("1", "0")
        reset = datetime.fromisoformat(headers["X-Rate-Limit-Reset"])
        assert reset == ends_at.replace(microsecond=0)
        assert "Allow" not in headers
