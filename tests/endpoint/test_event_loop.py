"""The login on an event loop: the same answers as through Django, for many at once (contract 1)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from django.test import Client

from taxpayers.services import block_system_user
from taxpayers.sql import fetch
from tests.dpop.dpop_erp import new_dpop_erp
from tests.introspection.api import claims_of, token_of
from tests.support import make
from tests.support.databases import another_session
from tests.support.erp import FORM, PATH, Erp, new_erp
from tests.support.moments import why
from tokens.answers.response import Answer
from tokens.keys.signer import current_key_ring
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent
from tokens.operations.asgi import TokenEndpoint

# The connections of the event loop see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Sent:
    """A request, and the parts in which its body comes; a header with two lines is sent twice."""

    body: bytes
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    parts: int = 1
    path: str = PATH


def login_of(erp: Erp, **form: str) -> Sent:
    return Sent(urlencode(erp.form | form).encode())


async def messages_of(
    application: Any, scope: dict[str, Any], *parts: bytes, ends: bool = True
) -> list[dict[str, Any]]:
    """What it sends for a body in these parts; `ends`: the client does not go away behind them."""
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    end = {"type": "http.request", "body": b"", "more_body": False}
    waiting.append(end if ends else {"type": "http.disconnect"})
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await application(scope, receive, send)
    return messages


async def ask(endpoint: TokenEndpoint, sent: Sent) -> Answer:
    size = -(-len(sent.body) // sent.parts) or 1
    headers = {"Content-Type": FORM} | sent.headers
    [message] = await messages_of(
        endpoint,
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
        *(sent.body[n : n + size] for n in range(0, len(sent.body), size)),
    )
    return cast("Answer", message["answer"])


def on_event_loop(work: Callable[[TokenEndpoint], Awaitable[Any]]) -> Any:
    current_key_ring(datetime.now(UTC))  # the loop itself reads no keys

    async def run() -> Any:
        endpoint = TokenEndpoint()
        try:
            return await work(endpoint)
        finally:
            await endpoint.close()

    return asyncio.run(run())


def answers_to(requests: Sequence[Sent]) -> list[Answer]:
    answers = on_event_loop(lambda at: asyncio.gather(*(ask(at, sent) for sent in requests)))
    return cast("list[Answer]", answers)


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
    scope = {"type": "http", "method": "POST", "headers": []}
    assert on_event_loop(lambda at: messages_of(at, scope, b"grant", ends=False)) == []
    assert not LoginEvent.objects.exists()


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
    assert head == answers[0], "whose body the server leaves out"


def execute_elsewhere(sql: str) -> None:
    with another_session() as other, other.cursor() as cursor:
        cursor.execute(sql)


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
def test_a_column_that_changes_and_a_session_that_ended_cost_no_statement(erp: Erp) -> None:
    """One that writes, too; on the event loop: tests/lanes/test_lost_connections.py."""
    count = "UPDATE client_usage SET used = used + 1 WHERE system_user_id = %s RETURNING used"

    def used() -> int:
        return int(fetch(count, [erp.system_user.pk])[0][0])

    assert [used(), used()] == [1, 2]  # it is prepared by now
    execute_elsewhere("ALTER TABLE client_usage ALTER COLUMN used TYPE bigint")
    assert used() == 3
    for number in (4, 5):
        execute_elsewhere(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert used() == number
    assert erp.login().status_code == 200
