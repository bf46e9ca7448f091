"""Which door a request takes, and that no kind of request takes the places of another."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from identity.doors import Doors
from identity.not_taken import answer_of
from identity.server.overload import NoPlace, NotSignedIn, NotTaken, TooLong, no_long_bodies
from tests.endpoint.test_event_loop import messages_of
from tokens.keys import signer
from tokens.self_service.throttle import BURST, too_many_calls
from tokens.status_lists import publication

PUBLISHED = (
    *("/status", "/status/0", "/.well-known/jwks.json"),
    *("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"),
)
PERMISSIONS, MANAGEMENT = "/api/v1/permissions", "/api/v1/management/taxpayers"
IMPORT = "/admin/taxpayers/taxpayer/import_registry/"


def scope(path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [(n.replace("_", "-").encode(), v.encode()) for n, v in headers.items()],
    }


async def answer(
    application: Any, sent: dict[str, Any], *parts: bytes, ends: bool = True
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; the status is 0 if there is no answer."""
    messages = await messages_of(application, sent, *parts, ends=ends)
    if not messages:
        return 0, {}, b""
    if whole := messages[0].get("answer"):
        return whole.status, {n.lower(): text for n, text in whole.headers.items()}, whole.body
    headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], headers, b"".join(m["body"] for m in messages[1:])


class Site:
    """As Django, but that a request of an API lasts until it is released."""

    def __init__(self) -> None:
        self.is_released = threading.Event()
        self.reached: list[str] = []

    def __call__(self, environ: Any, start: Callable[..., Any]) -> Iterable[bytes]:
        self.reached.append(environ["PATH_INFO"])
        if environ["PATH_INFO"].startswith("/api/"):
            self.is_released.wait(30)
        start("200 OK", [])
        return [b"page"]


async def log_in(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"token"})


@pytest.fixture
def what_was_read(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    """Lists and keys are read by threads, the last time just now; nothing else may ask for them."""
    assert {Client().get(path).status_code for path in PUBLISHED} == {200}
    lists = publication.status_lists()
    monkeypatch.setattr(publication, "uptime", lambda: lists._read_at)
    monkeypatch.setattr(lists, "is_kept_fresh", True)
    monkeypatch.setattr(signer._cache, "_is_kept_fresh", True)


@pytest.mark.usefixtures("what_was_read")
def test_while_apis_have_no_place_left_lists_keys_pages_and_logins_are_answered() -> None:
    site = Site()
    doors = Doors(log_in, site, no_long_bodies)
    others = (*PUBLISHED, "/guide", "/connect/token", "/health/live")

    async def scenario() -> dict[str, int]:
        places = 16 * settings.WEB_THREADS
        waiting = [
            asyncio.create_task(answer(doors, scope(PERMISSIONS if n % 2 else MANAGEMENT)))
            for n in range(places)
        ]
        await asyncio.sleep(0)
        statuses = {path: (await answer(doors, scope(path)))[0] for path in others}
        statuses[PERMISSIONS] = (await answer(doors, scope(PERMISSIONS)))[0]
        site.is_released.set()
        assert {status for status, _, _ in await asyncio.gather(*waiting)} == {200}
        return statuses

    assert asyncio.run(scenario()) == dict.fromkeys(others, 200) | {PERMISSIONS: 503}
    assert set(site.reached) == {PERMISSIONS, MANAGEMENT, "/guide"}, "the rest without a thread"


@pytest.mark.usefixtures("what_was_read")
def test_public_answers_are_the_same_from_the_event_loop_as_from_django() -> None:
    doors = Doors(log_in, Site(), no_long_bodies)
    for path in (*PUBLISHED, "/status/01", "/status/x", "/status/9"):
        for method in ("GET", "POST", "OPTIONS"):
            status, headers, body = asyncio.run(answer(doors, scope(path, method)))
            django = Client().generic(method, path)
            assert (status, body) == (django.status_code, django.content)
            assert headers == {name.lower(): value for name, value in django.items()}


def token(name: str, signature: str = "s") -> str:
    return f"Bearer h.{name}.{signature}"


def test_after_the_burst_of_a_token_one_call_each_pause() -> None:
    outcomes = [too_many_calls(token("paced"), now=100.0) for _ in range(BURST + 2)]
    assert [outcome is None for outcome in outcomes] == [True] * BURST + [False] * 2
    assert too_many_calls(token("paced"), now=100.25) is None
    assert too_many_calls(token("paced"), now=100.26) is not None
    assert too_many_calls(token("another"), now=100.26) is None


@pytest.mark.parametrize(
    "same", ["Bearer  h.spelled.s", "bearer h.spelled.t", "DPoP h.spelled.s ", "BEARER h.spelled."]
)
def test_a_token_spelled_in_another_way_is_the_same_token(same: str) -> None:
    for _ in range(BURST):
        too_many_calls(token("spelled"), now=100.0)
    assert too_many_calls(same, now=100.0) is not None


def test_a_call_too_many_is_answered_in_the_shape_of_the_api_without_a_thread() -> None:
    header, site = token("used up"), Site()
    site.is_released.set()

    async def scenario() -> tuple[int, dict[str, str], bytes]:
        later = asyncio.get_running_loop().time() + 1000
        for _ in range(BURST):
            too_many_calls(header, later)
        doors = Doors(log_in, site, no_long_bodies)
        await answer(doors, scope(MANAGEMENT, authorization=header))
        await answer(doors, scope(PERMISSIONS, authorization=token("fresh")))
        return await answer(doors, scope(PERMISSIONS, authorization=header))

    status, headers, body = asyncio.run(scenario())
    assert site.reached == [MANAGEMENT, PERMISSIONS]
    assert (status, json.loads(body)["error"]) == (429, "invalid_request")
    assert 900 < int(headers["retry-after"]) <= 1001  # seconds pass on a busy machine
    assert headers["cache-control"] == "no-store"
    assert headers["correlationid"]


@pytest.mark.parametrize(
    ("path", "fault", "status", "media_type"),
    [
        (PERMISSIONS, NoPlace(), 503, "application/json"),
        (PERMISSIONS, TooLong(9), 413, "application/json"),
        (MANAGEMENT, NoPlace(), 503, "application/problem+json"),
        (MANAGEMENT, TooLong(9), 413, "application/problem+json"),
        (MANAGEMENT, NotSignedIn("No token."), 401, "application/problem+json"),
        (IMPORT, NoPlace(), 503, "text/html; charset=utf-8"),
        (IMPORT, TooLong(9), 413, "text/html; charset=utf-8"),
    ],
)
def test_what_is_not_taken_is_answered_in_the_format_of_its_address(
    path: str, fault: NotTaken, status: int, media_type: str
) -> None:
    sent = answer_of(fault, scope(path))
    headers = sent.headers
    assert (sent.status, headers["Content-Type"]) == (status, media_type)
    assert headers["Content-Length"] == str(len(sent.body))
    pause = int(headers.get("Retry-After", "0"))  # spread
    assert (5 <= pause <= 300) if status == 503 else pause == 0
    assert ("WWW-Authenticate" in headers) == (status == 401)
    assert headers["Cache-Control"] == "no-store"
    if media_type != "text/html; charset=utf-8":
        assert headers["correlationId"] in sent.body.decode()


def test_who_is_not_signed_in_is_led_to_the_page_again() -> None:
    sent = answer_of(NotSignedIn(), scope(IMPORT) | {"query_string": b"a=1"})
    assert (sent.status, sent.headers["Location"]) == (303, f"{IMPORT}?a=1")
