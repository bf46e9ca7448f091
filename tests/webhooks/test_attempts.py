"""How a message is signed, when it is tried again, and when a receiver gets a pause."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from identity.webhooks.secret_storage import new_secret, signed_headers
from identity.webhooks.sending.attempts import (
    MOST_ATTEMPTS,
    Outcome,
    next_attempt,
    pause_until,
    retry_after,
)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FAILED = Outcome(500)


def test_a_message_is_tried_ten_times_in_about_three_days() -> None:
    at, count = AT, 1
    while (due := next_attempt(count, FAILED, at, lambda: 0.0)) is not None:
        at, count = due, count + 1
    assert count == MOST_ATTEMPTS == 10
    # As in the table of the specification.
    assert at - AT == timedelta(hours=75, minutes=35, seconds=5)


def test_each_delay_is_longer_by_up_to_a_quarter() -> None:
    first = next_attempt(2, FAILED, AT, lambda: 0.0)
    last = next_attempt(2, FAILED, AT, lambda: 1.0)
    assert (first, last) == (AT + timedelta(minutes=5), AT + timedelta(minutes=6, seconds=15))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((text, 0) for text in ("", "-1", "1.5", "soon", "\u0661")),
        *((text, 120) for text in ("120", " 120 ")),
        ("9" * 60, 86_400),
        ("Sun, 01 Mar 2026 12:10:00 GMT", 600),
        ("Sun, 01 Mar 2026 12:10:00", 600),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2037 11:00:00 GMT", 86_400),
        ("Sun, 99 Mar 2037 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 12:10:00 +9999", 0),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999999999", 0),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 86_400),
    ],
)
def test_what_a_receiver_asks_for_is_heard_up_to_a_day(text: str, seconds: int) -> None:
    assert retry_after(Outcome(429, retry_after=text), AT) == timedelta(seconds=seconds)


def test_no_attempt_is_made_before_the_receiver_wants_it() -> None:
    outcome = Outcome(503, retry_after="3600")
    assert next_attempt(1, outcome, AT, lambda: 0.0) == AT + timedelta(hours=1)
    assert next_attempt(9, outcome, AT, lambda: 0.0) == AT + timedelta(hours=24)
    assert pause_until(1, outcome, AT) == AT + timedelta(hours=1)


def test_the_pauses_of_a_receiver_grow_to_five_minutes() -> None:
    pauses = [(pause_until(n, Outcome(429), AT) - AT).total_seconds() for n in (1, 2, 8, 9, 9999)]
    assert pauses == [2, 4, 256, 300, 300]


@pytest.mark.parametrize(
    ("outcome", "is_success", "is_about_the_receiver"),
    [
        *((Outcome(status), False, False) for status in (199, 302, 404, 500)),
        *((Outcome(status), True, False) for status in (200, 299)),
        *((Outcome(status), False, True) for status in (429, 502, 503, 504)),
        (Outcome(fault="connection refused"), False, True),
    ],
)
def test_only_2xx_is_a_success_and_some_faults_concern_every_message(
    outcome: Outcome, is_success: bool, is_about_the_receiver: bool
) -> None:
    assert outcome.is_success is is_success
    assert outcome.is_about_the_receiver is is_about_the_receiver
    assert not outcome.is_gone
    assert Outcome(410).is_gone


# The example that every library of the specification is tested with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, SECONDS, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_has_its_signature() -> None:
    assert signed_headers(ID, SECONDS, BODY, [SECRET]) == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_a_new_secret_is_as_the_specification_wants_it() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    assert secret != new_secret()
