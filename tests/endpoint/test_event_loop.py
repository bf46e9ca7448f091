"""The login on an event loop: the same answers as through Django, for many at once (contract 1)."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import Client

from taxpayers.credentials import new_client_secret
from taxpayers.models import RateLimitCounter
from taxpayers.services import block_system_user
from tests.dpop.dpop_erp import new_dpop_erp
from tests.dpop.test_login import api_proof
from tests.introspection.api import claims_of, token_of
from tests.servers.processes import slowness
from tests.support import make
from tests.support.databases import another_session
from tests.support.erp import FORM, PATH, Erp, new_erp, post
from tests.support.moments import why
from tests.support.outages import database_out_of_reach
from tokens.keys.signer import current_key_ring
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent
from tokens.operations.asgi import TokenEndpoint

# The connections of the event loop see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.postgresql


@dataclass(frozen=True)
class Sent:
    """A request, and the parts in which its body comes; a header with two lines is sent twice."""

    body: bytes
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    parts: int = 1
    path: str = PATH


@dataclass
class Answer:
    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


def login_of(erp: Erp, **form: str) -> Sent:
    return Sent(urlencode(erp.form | form).encode())


async def ask(endpoint: TokenEndpoint, sent: Sent) -> Answer:
    size = -(-len(sent.body) // sent.parts) or 1
    parts = [sent.body[n : n + size] for n in range(0, len(sent.body), size)] or [b""]
    answered: list[dict[str, Any]] = []

    async def receive() -> Any:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        answered.append(message)

    headers = {"Content-Type": FORM} | sent.headers
    await endpoint(
        {
            "type": "http",
            "method": sent.method,
            "path": sent.path,
            "query_string": sent.query.encode(),
            "scheme": "http",
            "client": ("127.0.0.1", 40000),
            "headers": [
                (name.lower().encode(), each.encode("latin-1"))
                for name, value in headers.items()
                for each in value.split("\n")
            ],
        },
        receive,
        send,
    )
    start, end = answered
    shown = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], start["reason"].decode(), shown, end["body"])


def on_event_loop(work: Callable[[TokenEndpoint], Awaitable[Any]]) -> Any:
    """What the work returns, on a new loop with a new endpoint."""
    current_key_ring(datetime.now(UTC))  # the loop itself reads no keys

    async def run() -> Any:
        endpoint = TokenEndpoint()
        try:
            return await work(endpoint)
        finally:
            await endpoint.close()

    return asyncio.run(run())


def answers_to(requests: Sequence[Sent]) -> list[Answer]:
    """To requests that come at the same moment."""

    async def work(endpoint: TokenEndpoint) -> list[Answer]:
        return await asyncio.gather(*(ask(endpoint, sent) for sent in requests))

    return cast("list[Answer]", on_event_loop(work))


# --- The same answers -----------------------------------------------------------------------------
def through_django(sent: Sent) -> Answer:
    headers = {"Content-Type": FORM} | sent.headers
    how: Any = {"CONTENT_TYPE": headers.pop("Content-Type"), "headers": headers}
    django, path = Client(raise_request_exception=False), f"{sent.path}?{sent.query}"
    found: Any = django.generic(sent.method, path, sent.body, **how)
    return Answer(found.status_code, found.reason_phrase, dict(found.headers), found.content)


def acting() -> Sent:
    role = make.intermediary()
    granted = make.permission(intermediary=role)
    erp = new_erp(taxpayer=role.taxpayer)
    return Sent(login_of(erp).body, headers={"onbehalfof": str(granted.taxpayer.identifier)})


def by_basic(body: bytes = b"") -> Sent:
    erp = new_erp()
    body = b"grant_type=client_credentials" + body.replace(b"ID", erp.client_id.encode())
    return Sent(body, headers={"Authorization": erp.basic})


GRANTED: dict[str, Callable[[], Sent]] = {
    "right": lambda: login_of(new_erp()),
    "with a scope": lambda: login_of(new_erp(), scope="InvoicingAPI"),
    "unlimited": lambda: login_of(new_erp(logins_per_minute=0)),
    "by Basic": by_basic,
    "by Basic, with its id": lambda: by_basic(b"&client_id=ID"),
    "with a stale token": lambda: replace(
        login_of(new_erp()), headers={"Authorization": "Bearer \xe9"}
    ),
    "on behalf of another": acting,
    "in many parts": lambda: replace(login_of(new_erp()), parts=20),
}


def essence(answer: Answer) -> object:
    """All of it that is not different for each login."""
    body = json.loads(answer.body)
    claims = claims_of(body.pop("access_token"))
    assert answer.headers["X-Represented-Taxpayer"] == claims["sub"]
    assert LoginEvent.objects.get(pk=answer.headers["correlationId"]).reason == ""
    differs = {"correlationId", "Content-Length", "X-Client-Secret-Expires-At"}
    differs |= {"X-Represented-Taxpayer", "X-Renew-At"}
    headers = {name: None if name in differs else v for name, v in answer.headers.items()}
    return answer.status, answer.reason, headers, body


def test_the_event_loop_answers_as_django_does() -> None:
    """A login that is granted; each refusal is in `test_refusals`, through both doors."""
    answers = answers_to([new() for new in GRANTED.values()])
    for (name, new), answer in zip(GRANTED.items(), answers, strict=True):
        assert essence(answer) == essence(through_django(new())), name


def test_a_client_that_goes_away_before_its_body_is_complete_gets_nothing() -> None:
    sent: list[Any] = []

    async def work(endpoint: TokenEndpoint) -> None:
        messages = [
            {"type": "http.request", "body": b"grant", "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await endpoint({"type": "http", "method": "POST", "headers": []}, receive, send)

    on_event_loop(work)
    assert sent == []
    assert not LoginEvent.objects.exists()


# --- Many at once ---------------------------------------------------------------------------------


def test_a_limit_is_exact_for_logins_that_come_at_once(erp: Erp) -> None:
    statuses: list[int] = []
    while len(statuses) < 30:  # a busy machine answers some with 503, and counts none of these
        answers = answers_to([login_of(erp)] * (30 - len(statuses)))
        statuses += [answer.status for answer in answers if answer.status != 503]
    assert sorted(statuses) == [200] * 12 + [429] * 18
    assert LoginEvent.objects.count() == RateLimitCounter.objects.get().used == 12


# --- Others who have locked a row -----------------------------------------------------------------
@contextmanager
def row_locked(erp: Erp) -> Iterator[None]:
    """As a long transaction does that changes the client."""
    lock = "SELECT 1 FROM client_usage WHERE system_user_id = %s FOR UPDATE"
    with another_session() as other, other.cursor() as cursor:
        other.set_autocommit(False)
        cursor.execute(lock, [erp.system_user.pk])
        yield


@on_postgresql
def test_a_locked_row_makes_only_its_client_wait_and_never_longer_than_two_seconds(
    erp: Erp,
) -> None:
    others = [new_erp() for _ in range(5)]

    async def timed(endpoint: TokenEndpoint, each: Erp) -> tuple[int, float]:
        started = time.monotonic()
        answer = await ask(endpoint, login_of(each))
        return answer.status, time.monotonic() - started

    async def work(endpoint: TokenEndpoint) -> list[tuple[int, float]]:
        return await asyncio.gather(*(timed(endpoint, each) for each in (*[erp] * 6, *others)))

    with row_locked(erp):
        answers = on_event_loop(work)
    of_client, of_others = answers[:6], answers[6:]
    assert [status for status, _ in of_client] == [503] * 6
    assert max(seconds for _, seconds in of_client) < 1.2 + slowness()
    assert [status for status, _ in of_others] == [200] * 5
    assert max(seconds for _, seconds in of_others) < slowness()
    assert LoginEvent.objects.count() == 5
    assert [answer.status for answer in answers_to([login_of(erp)])] == [200]


# The connections of the event loop see only what is committed.
ME = "/api/v1/me"


def me(authorization: str, method: str = "GET", **headers: str) -> Sent:
    return Sent(b"", method, {"Authorization": authorization, **headers}, path=ME)


def test_the_event_loop_answers_about_a_token_as_django_does() -> None:
    blocked = new_erp()
    token, ended = token_of(new_erp()), token_of(blocked)
    block_system_user(system_user=blocked.system_user, **why())
    bound = new_dpop_erp().token()
    requests = [
        *(me(f"Bearer {token}"), me(f"bearer {token}", Accept="text/html")),
        *(me(f"Bearer {token}", "POST"), me(f"Bearer {ended}"), me(f"Bearer {token}x")),
        *(me(""), me(f"DPoP {token}"), me(f"Bearer {bound}"), me(f"DPoP {bound}", DPoP="x")),
    ]
    answers = answers_to(requests)
    assert [each.status for each in answers] == [200, 200, 405, *[401] * 6]
    assert answers == [through_django(each) for each in requests]
    (head,) = answers_to([me(f"Bearer {token}", "HEAD")])
    assert (head.headers, head.body) == (answers[0].headers, b"")


def test_a_proof_opens_once() -> None:
    erp = new_dpop_erp()
    token = erp.token()
    answers = answers_to([me(f"DPoP {token}", DPoP=api_proof(erp, token))] * 3)
    assert sorted(each.status for each in answers) == [200, 401, 401]


def test_without_the_database_it_is_a_503_and_no_token_counts_as_ended() -> None:
    token = token_of(new_erp())
    with database_out_of_reach():
        answer = through_django(me(f"Bearer {token}"))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert b"Nothing is wrong with the request" in answer.body


# SQLite prepares nothing beforehand, and has no server that could end a connection.

Ask = Callable[[Erp], HttpResponse]
USED_GROWS = "ALTER TABLE client_usage ALTER COLUMN used TYPE bigint"
WRONG_SECRET = new_client_secret("test")
KINDS: dict[str, tuple[Ask, int]] = {
    "": (lambda erp: erp.login(), 200),
    "malformed_request": (lambda erp: post("grant_type=%"), 400),
    "invalid_credentials": (lambda erp: erp.login(client_secret=WRONG_SECRET), 400),
    "invalid_scope": (lambda erp: erp.login(scope="Unknown"), 400),
}
every_kind = pytest.mark.parametrize("reason", KINDS)


def execute_elsewhere(sql: str) -> None:
    with another_session() as other, other.cursor() as cursor:
        cursor.execute(sql)


def terminate_all_sessions() -> None:
    """Returns when they have ended."""
    execute_elsewhere(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def statuses(ask: Ask, erp: Erp, times: int = 3) -> list[int]:
    return [ask(erp).status_code for _ in range(times)]


def recorded() -> list[str]:
    """The reason of each login event."""
    return list(LoginEvent.objects.values_list("reason", flat=True))


@pytest.mark.postgresql
def test_the_orm_prepares_nothing_that_a_changed_column_could_break() -> None:
    at = datetime.now(UTC)
    for _ in range(7):  # psycopg's own threshold is 5
        read_key_ring(at)
    execute_elsewhere("ALTER TABLE signing_keys ALTER COLUMN generation TYPE bigint")
    try:
        assert read_key_ring(at).keys
    finally:
        execute_elsewhere("ALTER TABLE signing_keys ALTER COLUMN generation TYPE integer")


@pytest.mark.postgresql
def test_a_column_that_changes_costs_no_login_and_no_record(erp: Erp) -> None:
    changes = [
        "ALTER TABLE system_users ALTER COLUMN scopes TYPE text",
        "ALTER TABLE credentials ALTER COLUMN hint TYPE text",
        "ALTER TABLE login_events ALTER COLUMN detail TYPE text",
        "ALTER TABLE client_usage ALTER COLUMN window_started_at TYPE timestamptz(3)",
        USED_GROWS,
        "ALTER TABLE login_events ADD COLUMN note text NOT NULL DEFAULT ''",
    ]
    new = iter([new_erp() for _ in range(3 + len(changes))])

    def log_in() -> list[int]:
        """A client that this node knows, and one whose facts it reads."""
        return [erp.login().status_code, next(new).login().status_code]

    assert [log_in() for _ in range(3)] == [[200, 200]] * 3  # all is prepared by now
    for change in changes:
        execute_elsewhere(change)
        assert log_in() == [200, 200], change
    assert RateLimitCounter.objects.get(pk=erp.system_user.pk).used == 9
    assert LoginEvent.objects.count() == 18


@pytest.mark.postgresql
@every_kind
def test_sessions_that_the_server_ended_cost_no_answer(erp: Erp, reason: str) -> None:
    ask, status = KINDS[reason]
    assert statuses(ask, erp) == [status] * 3
    for _ in range(2):
        terminate_all_sessions()
        assert statuses(ask, erp, 1) == [status]
    assert recorded() == [reason] * 5
