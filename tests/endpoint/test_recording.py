"""Nothing is answered before it is recorded, and each failure counts where it belongs (5)."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import patch
from uuid import UUID

import pytest
from django.db import OperationalError
from pytest_django import Settings

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from taxpayers.rules import decide
from tests.support.erp import Erp, assert_refused, assert_unavailable, new_erp, post
from tests.support.outages import writing_fails
from tokens.access_tokens.issuing import SignedToken
from tokens.models import FailureBucket, LoginEvent
from tokens.operations import recording
from tokens.operations.stages import IssuedLogin
from tokens.operations.toolkit import LoginValidator
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
ELSEWHERE = "198.51.100.1"


def from_elsewhere(erp: Erp, **form: str) -> int:
    """The status of the same login from another address."""
    body = "&".join(f"{k}={v}" for k, v in {**erp.form, **form}.items())
    return post(body, REMOTE_ADDR=ELSEWHERE).status_code


# --- No record, no answer -----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("table", "login", "is_client_known"),
    [
        ("login_events", "right", True),
        ("login_events", "blocked", True),
        ("login_events", "wrong secret", False),
        ("login_events", "malformed", False),
        ("client_usage", "right", True),
        ("client_usage", "blocked", True),
        ("failure_buckets", "wrong secret", False),
        ("failure_buckets", "malformed", False),
    ],
)
def test_a_login_that_cannot_be_recorded_is_a_503_whatever_its_outcome(
    erp: Erp, blocked: Erp, table: str, login: str, is_client_known: bool
) -> None:
    logins = {
        "right": erp.login,
        "blocked": blocked.login,
        "wrong secret": lambda: erp.login(client_secret=new_client_secret("test")),
        "malformed": lambda: post("a=%zz"),
    }
    with writing_fails(table):
        response = logins[login]()
    assert_unavailable(response, {"X-Client-Secret-Expires-At": DATE} if is_client_known else {})
    assert not LoginEvent.objects.exists()
    assert not FailureBucket.objects.exists()
    assert set(RateLimitCounter.objects.values_list("used", flat=True)) == {0}


# --- What the record of a refusal holds ---------------------------------------------------------


def event_of(reference: str) -> LoginEvent:
    return LoginEvent.objects.get(pk=UUID(reference))


def test_a_refused_client_is_recorded_with_all_that_is_known(blocked: Erp) -> None:
    event = event_of(blocked.login()["correlationId"])
    user = blocked.system_user
    assert (event.reason, event.since) == ("system_user_blocked", user.blocked_at)
    assert (event.client_id, event.system_user_id) == (blocked.client_id, user.id)
    assert event.secret_id == user.credentials.get().id
    assert (event.subject, event.actor) == (blocked.tin, "")
    assert (event.scope, event.kid, event.source_address) == ("", "", "127.0.0.1")


def test_a_refused_intermediary_is_recorded_as_the_actor(intermediary: Erp) -> None:
    event = event_of(intermediary.login(on_behalf_of="C0000000000")["correlationId"])
    assert (event.reason, event.since) == ("no_permission", None)
    assert (event.subject, event.actor) == ("C0000000000", intermediary.tin)


def test_a_wrong_secret_is_recorded_without_the_owner_of_the_id(erp: Erp) -> None:
    response = erp.login(client_secret=new_client_secret("test"), on_behalf_of="C0000000000")
    event = event_of(response["correlationId"])
    assert (event.reason, event.client_id) == ("invalid_credentials", erp.client_id)
    assert (event.system_user_id, event.secret_id) == (None, None)
    assert (event.subject, event.actor) == ("C0000000000", "")


def test_the_parameter_and_the_detail_of_a_fault_are_recorded(erp: Erp) -> None:
    event = event_of(erp.login(scope="Nonsense")["correlationId"])
    assert (event.reason, event.parameter, event.detail) == ("invalid_scope", "scope", "Nonsense")


def test_what_a_client_wrote_is_recorded_cut_and_printable(erp: Erp) -> None:
    response = erp.login(
        scope="\x00" + "s." * 2500, headers={"User-Agent": "\x1b[2J" + "u." * 2500}
    )
    event = event_of(response["correlationId"])
    assert event.detail == "?" + "s." * 99 + "s"
    assert event.user_agent == "?[2J" + "u." * 98


@pytest.mark.parametrize("before", [0, 40, 55, 60, 180, 191])
def test_a_secret_in_the_wrong_place_is_never_recorded_nor_logged(
    erp: Erp, caplog: pytest.LogCaptureFixture, before: int
) -> None:
    caplog.set_level(logging.INFO)
    misplaced = "x" * before + erp.client_secret
    response = erp.login(client_id=misplaced, scope=misplaced, headers={"User-Agent": misplaced})
    erp.login(scope=misplaced, headers={"User-Agent": misplaced})
    assert response.status_code == 400
    written = str(list(LoginEvent.objects.values())) + str([vars(r) for r in caplog.records])
    # Not even the beginning of it, where a text was cut.
    assert erp.client_secret[:14] not in written
    for event in LoginEvent.objects.all():
        lengths = len(event.client_id), len(event.detail), len(event.user_agent)
        assert all(n <= most for n, most in zip(lengths, (64, 200, 200), strict=True))


def test_a_failure_inside_is_logged_with_its_cause_but_recorded_without(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    error = ZeroDivisionError("cause")
    with patch("tokens.operations.toolkit.decide", side_effect=error):
        response = erp.login()
    record = caplog.records[0]
    assert (record.name, record.levelname, record.getMessage()) == (
        "tokens.login",
        "ERROR",
        "login failed",
    )
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert vars(record)["reference"] == response["correlationId"]
    event = event_of(response["correlationId"])
    assert (event.reason, event.detail) == ("server_error", "")


@pytest.mark.django_db(transaction=True)
def test_an_outage_is_logged_in_a_line_for_each_login_without_a_traceback(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    with patch("tokens.store.django_store.perform", side_effect=OperationalError("disk full")):
        response = erp.login()
    assert response.status_code == 503
    record = caplog.records[0]
    assert (record.getMessage(), record.exc_info) == ("login failed", None)
    assert vars(record)["error"] == "django.db.utils.OperationalError: disk full"
    assert vars(record)["reference"] == response["correlationId"]


def test_a_refusal_by_oauthlib_itself_is_an_error_of_ours(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    with patch.object(LoginValidator, "validate_grant_type", return_value=False):
        response = erp.login()
    assert event_of(response["correlationId"]).reason == "server_error"
    assert "oauthlib refused what was checked before" in caplog.text


def test_a_login_is_decided_at_the_moment_that_is_recorded(erp: Erp) -> None:
    with patch("tokens.operations.toolkit.decide", wraps=decide) as decided:
        response = erp.login()
    (request,) = decided.call_args.args
    assert request.at == event_of(response["correlationId"]).at


def test_the_log_line_of_a_login_holds_this_and_no_more(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    plain = set(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
    caplog.set_level(logging.INFO, "tokens.login")
    references = [
        erp.login()["correlationId"],
        erp.login(client_secret=new_client_secret("test"))["correlationId"],
        erp.login(client_id="\n" + "x." * 50)["correlationId"],
        post("a=%zz")["correlationId"],
    ]
    lines = [{k: v for k, v in vars(r).items() if k not in plain} for r in caplog.records]
    assert all(0.01 < line.pop("milliseconds") < 60_000 for line in lines)
    assert lines == [
        {
            "reference": reference,
            "outcome": outcome,
            "client_id": client_id,
            "source_address": "127.0.0.1",
        }
        for reference, outcome, client_id in zip(
            references,
            ["issued", "invalid_credentials", "malformed_credentials", "malformed_request"],
            [erp.client_id, erp.client_id, "?" + "x." * 31 + "x", ""],
            strict=True,
        )
    ]


def test_a_signed_token_does_not_show_itself_by_accident() -> None:
    token = SignedToken(None, "a-kid", "the.encoded.token")  # type: ignore[arg-type]
    login = IssuedLogin(None, token, None, "the.encoded.token")  # type: ignore[arg-type]
    assert "the.encoded.token" not in f"{token!r} {token} {login!r} {login}"


# --- Against what a failure counts --------------------------------------------------------------


def fail(erp: Erp, times: int = PAIR_BACKOFF.free + 1, **form: str) -> list[int]:
    return [erp.login(**{"client_secret": WRONG, **form}).status_code for _ in range(times)]


WRONG = new_client_secret("test")


def test_who_fails_at_one_address_is_heard_at_another(erp: Erp) -> None:
    assert fail(erp, PAIR_BACKOFF.free + 3)[-2:] == [429, 429]
    assert from_elsewhere(erp, client_secret=WRONG) == 400


def test_who_fails_with_one_id_is_heard_with_another(erp: Erp) -> None:
    assert fail(erp, PAIR_BACKOFF.free + 3)[-2:] == [429, 429]
    assert fail(new_erp(), 1) == [400]


def test_a_pause_holds_for_every_secret_of_the_same_caller(erp: Erp) -> None:
    fail(erp, PAIR_BACKOFF.free + 3)
    assert fail(erp, 1, client_secret=new_client_secret("test")) == [429]


def test_failures_of_an_address_share_one_bucket_and_each_pair_has_its_own(erp: Erp) -> None:
    fail(erp, 2)
    fail(erp, 1, client_id=new_client_id("test"))
    from_elsewhere(erp, client_secret=WRONG)
    rows = FailureBucket.objects.values_list("id", "failures")
    assert sorted(n for id_, n in rows if id_ % 2 == 0) == [1, 1, 2]  # of pairs
    assert sorted(n for id_, n in rows if id_ % 2 == 1) == [1, 3]  # of addresses


@pytest.fixture
def _other_bucket_keys() -> Iterator[None]:
    recording.buckets.cache_clear()
    yield
    recording.buckets.cache_clear()


@pytest.mark.usefixtures("_other_bucket_keys")
def test_buckets_cannot_be_computed_without_the_services_key(erp: Erp, settings: Settings) -> None:
    settings.SECRET_KEY = "one key"
    fail(erp, 1)
    settings.SECRET_KEY = "another key"
    recording.buckets.cache_clear()
    fail(erp, 1)
    assert FailureBucket.objects.count() == 4


@pytest.mark.parametrize(
    "end",
    [
        {"created_at": NOW - 9 * DAY, "expires_at": NOW - DAY},
        {"revoked_at": NOW - DAY, "slot": None},
    ],
)
def test_a_secret_that_ended_backs_off_and_uses_nothing_of_the_limit(
    erp: Erp, end: dict[str, object]
) -> None:
    erp.system_user.credentials.update(**end)
    answers = [erp.login() for _ in range(PAIR_BACKOFF.free + 3)]
    assert [a.status_code for a in answers] == [400] * (PAIR_BACKOFF.free + 1) + [429, 429]
    assert {a["X-Rate-Limit-Remaining"] for a in answers[:-2]} == {"12"}
    assert RateLimitCounter.objects.get().used == 0
    for denied in answers[-2:]:  # by the database, and remembered
        assert_refused(
            denied,
            reason="rate_limited",
            status=429,
            error="invalid_request",
            says="Too many failed logins",
            fixed_by="operator of the ERP system",
            headers={
                "Retry-After": "1",
                "X-Rate-Limit-Limit": "1",
                "X-Rate-Limit-Remaining": "0",
                "X-Rate-Limit-Reset": DATE,
                "X-Client-Secret-Expires-At": DATE,
            },
        )
        told = datetime.fromisoformat(denied["X-Client-Secret-Expires-At"])
        assert told == erp.system_user.credentials.get().expires_at.replace(microsecond=0)


def test_a_refused_client_uses_its_limit_and_is_told_what_is_left(blocked: Erp) -> None:
    assert [blocked.login()["X-Rate-Limit-Remaining"] for _ in range(2)] == ["11", "10"]
    assert RateLimitCounter.objects.get().used == 2


# --- Denials that are remembered ----------------------------------------------------------------


def test_a_limit_that_is_reached_is_told_to_a_right_secret_only(erp: Erp) -> None:
    assert [erp.login().status_code for _ in range(13)][-1] == 429
    answer = erp.login(client_secret=WRONG)
    assert json.loads(answer.content)["error"] == "invalid_client"
    assert fail(new_erp(), 1, client_secret=erp.client_secret) == [400]


def test_a_limit_is_remembered_wherever_the_client_comes_from(
    erp: Erp, django_assert_num_queries: object
) -> None:
    for _ in range(13):
        erp.login()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert from_elsewhere(erp) == 429


def test_a_pause_is_remembered_and_costs_no_query(
    erp: Erp, django_assert_num_queries: object
) -> None:
    fail(erp, PAIR_BACKOFF.free + 2)
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert fail(erp, 1) == [429]


def test_when_a_limit_ends_is_told_in_seconds_and_as_a_moment(erp: Erp) -> None:
    answers = [erp.login() for _ in range(14)][-2:]  # by the database, and remembered
    counter = RateLimitCounter.objects.get()
    ends_at = counter.window_started_at + timedelta(seconds=60)
    secret_ends_at = erp.system_user.credentials.get().expires_at
    for answer in answers:
        assert answer.status_code == 429
        reset = datetime.fromisoformat(answer["X-Rate-Limit-Reset"])
        assert reset == ends_at.replace(microsecond=0)
        left = (ends_at - datetime.now(UTC)).total_seconds()
        assert left <= int(answer["Retry-After"]) <= 60
        assert answer["X-Rate-Limit-Limit"] == "12"
        told = datetime.fromisoformat(answer["X-Client-Secret-Expires-At"])
        assert told == secret_ends_at.replace(microsecond=0)
