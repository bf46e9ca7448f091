"""No record, no token, no count: what happens to logins whose event cannot be written (contract 5).

On the event loop, alone and together; `tests/endpoint/test_recording.py` has the same for Django.
"""

import json
from collections.abc import Callable, Iterable

import pytest

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from tests.endpoint.test_event_loop import Answer, Sent, answers_to, login_of
from tests.support.erp import Erp, new_erp
from tests.support.outages import writing_fails
from tokens.models import FailureBucket, LoginEvent

pytestmark = pytest.mark.django_db(transaction=True)

LOGINS: dict[str, Callable[[Erp, Erp], Sent]] = {
    "right": lambda erp, blocked: login_of(erp),
    "blocked": lambda erp, blocked: login_of(blocked),
    "wrong secret": lambda erp, blocked: login_of(erp, client_secret=new_client_secret("test")),
    "unknown id": lambda erp, blocked: login_of(erp, client_id=new_client_id("test")),
    "malformed": lambda erp, blocked: Sent(b"a=%zz"),
}


def assert_unavailable(answer: Answer) -> None:
    body = json.loads(answer.body)
    assert (answer.status, answer.reason) == (503, "temporarily_unavailable")
    assert body["error"] == "temporarily_unavailable"
    assert "access_token" not in body
    assert answer.headers["Retry-After"] == "5"


def assert_nothing_is_counted() -> None:
    assert not LoginEvent.objects.exists()
    assert not FailureBucket.objects.exists()
    counters = RateLimitCounter.objects.values_list("used", "secrets_used")
    assert all(counter == (0, {}) for counter in counters)


@pytest.mark.parametrize(
    ("table", "logins"),
    [
        ("login_events", LOGINS),
        ("client_usage", ("right", "blocked")),
        ("failure_buckets", ("wrong secret", "unknown id", "malformed")),
    ],
)
def test_a_login_that_cannot_be_recorded_is_a_503_and_counts_nowhere(
    erp: Erp, blocked: Erp, table: str, logins: Iterable[str]
) -> None:
    requests = {login: LOGINS[login](erp, blocked) for login in logins}
    with writing_fails(table):
        for sent in requests.values():
            (answer,) = answers_to([sent])
            assert_unavailable(answer)
            assert_nothing_is_counted()
    for login, sent in requests.items():
        assert answers_to([sent])[0].status == (200 if login == "right" else 400)


def test_of_logins_that_cannot_be_recorded_together_none_gets_a_token_and_none_counts() -> None:
    erps = [new_erp() for _ in range(5)]
    with writing_fails("login_events"):
        answers = answers_to([*(login_of(erp) for erp in erps), Sent(b"a=%zz")])
    for answer in answers:
        assert_unavailable(answer)
    assert_nothing_is_counted()
