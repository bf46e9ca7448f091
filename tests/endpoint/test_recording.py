"""Nothing is answered before it is recorded, and each failure counts where it belongs (5)."""

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from pytest_django import Settings

from taxpayers.credentials import new_client_secret
from taxpayers.models import RateLimitCounter
from tests.endpoint.test_event_loop import Sent, login_of
from tests.endpoint.test_refusals import as_response
from tests.support.erp import Erp, assert_refused, assert_unavailable, event_of, post
from tests.support.outages import writing_fails
from tests.wire.test_answers import Send, both, committed
from tokens.models import FailureBucket, LoginEvent
from tokens.operations import recording
from tokens.operations.toolkit import LoginValidator
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db

NOW = datetime.now(UTC)
WRONG = new_client_secret("test")
DAY = timedelta(days=1)
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
LOGINS: dict[str, Callable[[Erp, Erp], Sent]] = {
    "right": lambda erp, blocked: login_of(erp),
    "blocked": lambda erp, blocked: login_of(blocked),
    "wrong secret": lambda erp, blocked: login_of(erp, client_secret=WRONG),
    "malformed": lambda erp, blocked: Sent(b"a=%zz"),
}


def assert_nothing_is_counted() -> None:
    assert not LoginEvent.objects.exists()
    assert not FailureBucket.objects.exists()
    counters = RateLimitCounter.objects.values_list("used", "secrets_used")
    assert all(counter == (0, {}) for counter in counters)


@committed
@both
@pytest.mark.parametrize(
    ("table", "logins"),
    [
        ("login_events", LOGINS),
        ("client_usage", ("right", "blocked")),
        ("failure_buckets", ("wrong secret", "malformed")),
    ],
)
def test_a_login_that_cannot_be_recorded_is_a_503_and_counts_nowhere(
    send: Send, erp: Erp, blocked: Erp, table: str, logins: Iterable[str]
) -> None:
    requests = {login: LOGINS[login](erp, blocked) for login in logins}
    with writing_fails(table):
        for login, sent in requests.items():
            is_known = login in ("right", "blocked")
            expires = {"X-Client-Secret-Expires-At": DATE} if is_known else {}
            assert_unavailable(as_response(send(sent)), expires)
            assert_nothing_is_counted()
    for login, sent in requests.items():
        assert send(sent).status == (200 if login == "right" else 400)


def test_a_refused_client_is_recorded_with_all_that_is_known(blocked: Erp) -> None:
    event = event_of(blocked.login())
    user = blocked.system_user
    assert (event.reason, event.since) == ("system_user_blocked", user.blocked_at)
    assert (event.client_id, event.system_user_id) == (blocked.client_id, user.id)
    assert event.secret_id == user.credentials.get().id
    assert (event.subject, event.actor) == (blocked.tin, "")
    assert (event.scope, event.kid, event.source_address) == ("", "", "127.0.0.1")


def test_the_parameter_and_the_detail_of_a_fault_are_recorded(erp: Erp) -> None:
    event = event_of(erp.login(scope="Nonsense"))
    assert (event.reason, event.parameter, event.detail) == ("invalid_scope", "scope", "Nonsense")


def test_what_a_client_wrote_is_recorded_cut_and_printable(erp: Erp) -> None:
    response = erp.login(
        scope="\x00" + "s." * 2500, headers={"User-Agent": "\x1b[2J" + "u." * 2500}
    )
    event = event_of(response)
    assert event.detail == "?" + "s." * 99 + "s"
    assert event.user_agent == "?[2J" + "u." * 98


@pytest.mark.parametrize("before", [0, 40, 55, 60, 180, 191])
def test_neither_a_token_nor_a_secret_in_the_wrong_place_is_recorded_or_logged(
    erp: Erp, caplog: pytest.LogCaptureFixture, before: int
) -> None:
    caplog.set_level(logging.INFO)
    misplaced = "x" * before + erp.client_secret
    response = erp.login(client_id=misplaced, scope=misplaced, headers={"User-Agent": misplaced})
    erp.login(scope=misplaced, headers={"User-Agent": misplaced})
    token = json.loads(erp.login().content)["access_token"]
    assert response.status_code == 400
    written = str(list(LoginEvent.objects.values())) + str([vars(r) for r in caplog.records])
    # Not even the beginning of it, where a text was cut.
    for hidden in (erp.client_secret[:14], token.rpartition(".")[2]):
        assert hidden not in written
    for event in LoginEvent.objects.all():
        lengths = len(event.client_id), len(event.detail), len(event.user_agent)
        assert all(n <= most for n, most in zip(lengths, (64, 200, 200), strict=True))


def test_a_refusal_by_oauthlib_itself_is_an_error_of_ours(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    with patch.object(LoginValidator, "validate_grant_type", return_value=False):
        response = erp.login()
    assert event_of(response).reason == "server_error"
    assert "UnauthorizedClientError" in caplog.text


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
    outcomes = ["issued", "invalid_credentials", "malformed_credentials", "malformed_request"]
    clients = [erp.client_id, erp.client_id, "?" + "x." * 31 + "x", ""]
    assert list(LoginEvent.objects.order_by("pk").values_list("client_id", flat=True)) == clients
    lines = [{k: v for k, v in vars(r).items() if k not in plain} for r in caplog.records]
    assert all(0.01 < line.pop("milliseconds") < 60_000 for line in lines)
    names = ("reference", "outcome", "client_id", "source_address")
    rows = zip(references, outcomes, clients, ["127.0.0.1"] * 4, strict=True)
    assert lines == [dict(zip(names, row, strict=True)) for row in rows]


def test_buckets_cannot_be_computed_without_the_services_key(settings: Settings) -> None:
    found = set()
    for key in ("one key", "another key", "that of the other tests"):
        settings.SECRET_KEY = key
        recording.buckets.cache_clear()
        found.add(recording.buckets().of_address("192.0.2.1"))
    recording.buckets.cache_clear()
    assert len(found) == 3


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
