"""Django's pages under the event loop: what reaches them, and what is refused before."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from identity.server.wsgi_bridge import Environ, WsgiBridge

Messages = list[dict[str, Any]]


def echo(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers with what it got of the request."""
    shown = {key: value for key, value in environ.items() if isinstance(value, str)}
    shown["body"] = environ["wsgi.input"].read().decode()
    start_response("400 invalid_request", [("Content-Type", "application/json")])
    return [json.dumps(shown).encode()]


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": "/x",
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [*headers],
    }


async def call(bridge: WsgiBridge, *parts: bytes, headers: Any = (), ends: bool = True) -> Messages:
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    if not ends:
        waiting[-1] = {"type": "http.disconnect"}
    sent: Messages = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await bridge(scope(*headers), receive, send)
    return sent


def bridge_to(application: Any = echo, *, threads: int = 2, places: int = 4) -> WsgiBridge:
    longest = {"/x": 100}
    return WsgiBridge(
        application, threads=threads, places=places, max_body_bytes=longest.__getitem__
    )


def body_of(sent: Messages) -> Any:
    return json.loads(b"".join(message.get("body", b"") for message in sent))


def test_a_page_gets_the_whole_body_and_its_length() -> None:
    chunked = [(b"transfer-encoding", b"chunked"), (b"content-length", b"9")]
    seen = body_of(asyncio.run(call(bridge_to(), b"a=", b"b", headers=chunked)))
    assert (seen["body"], seen["CONTENT_LENGTH"]) == ("a=b", "3")
    assert "HTTP_TRANSFER_ENCODING" not in seen


def test_the_reason_phrase_is_passed_on() -> None:
    start = asyncio.run(call(bridge_to()))[0]
    assert (start["status"], start["reason"]) == (400, b"invalid_request")


def test_a_header_with_an_underscore_does_not_stand_for_another() -> None:
    headers = [(b"x_forwarded_for", b"203.0.113.9"), (b"x-forwarded-for", b"10.0.0.1")]
    seen = body_of(asyncio.run(call(bridge_to(), headers=headers)))
    assert seen["HTTP_X_FORWARDED_FOR"] == "10.0.0.1"


def test_a_body_too_long_is_refused_before_a_thread_sees_it() -> None:
    sent = asyncio.run(call(bridge_to(), b"a" * 60, b"a" * 60))
    assert sent[0]["status"] == 413
    assert "longer than 100 bytes" in body_of(sent)["error_description"]


def test_a_request_that_ends_too_early_reaches_no_page() -> None:
    assert asyncio.run(call(bridge_to(), b"a=", ends=False)) == []


def test_what_django_cannot_construct_is_malformed() -> None:
    def fail(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        raise ValueError("a charset that cannot be read")

    sent = asyncio.run(call(bridge_to(fail)))
    assert (sent[0]["status"], sent[0]["reason"]) == (400, b"invalid_request")
    assert body_of(sent)["error"] == "invalid_request"


@pytest.mark.parametrize("places", [1, 3])
def test_more_requests_than_places_are_refused_at_once(places: int) -> None:
    released = threading.Event()

    def wait(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        released.wait(10)
        return echo(environ, start_response)

    async def flood() -> list[int]:
        bridge = bridge_to(wait, places=places)
        first = [asyncio.create_task(call(bridge)) for _ in range(places)]
        await asyncio.sleep(0.05)
        late = await call(bridge)
        released.set()
        return [late[0]["status"], *[(await task)[0]["status"] for task in first]]

    assert asyncio.run(flood()) == [503, *[400] * places]


class _Endless:
    """An answer of a page without an end, as an export of millions of rows."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()
        self.chunks = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> "_Endless":
        start_response("200 OK", [])
        return self

    def __iter__(self) -> "_Endless":
        return self

    def __next__(self) -> bytes:
        self.chunks += 1
        assert self.chunks < 10_000, "nobody stopped it"
        return b"row"

    def close(self) -> None:
        self.is_closed.set()


def test_an_answer_that_nobody_reads_any_more_ends() -> None:
    page, sent = _Endless(), Messages()

    async def scenario() -> None:
        has_gone = asyncio.Event()
        whole = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if whole:
                return whole.pop()
            await has_gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if len(sent) == 5:
                has_gone.set()

        await asyncio.wait_for(bridge_to(page)(scope(), receive, send), 30)

    asyncio.run(scenario())
    assert page.is_closed.is_set()
    assert 3 < page.chunks < 1_000
