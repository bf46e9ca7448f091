"""Django's synchronous pages under the event loop: in threads, each with a whole request.

a2wsgi translates; this adds what it leaves out: the reason phrase, a limit, a body that is read
before a thread is occupied, and the end of an answer that nobody reads any more.
"""

import asyncio
import io
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from a2wsgi import WSGIMiddleware

from identity.server.answers import CONTENT_TOO_LARGE, Answer, malformed, unavailable
from identity.server.overload import send_answer

Environ = dict[str, Any]
WsgiApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
Scope = dict[str, Any]

_IN_MEMORY_BYTES = 64 * 1024
# What passes the translation: the body, the reason phrase, and whether the client has gone.
_BODY, _REASON, _IS_GONE = "identity.body", "identity.reason", "identity.is_gone"
# With an underscore, X_Forwarded_For and X-Forwarded-For would be one key (RFC 3875 4.1.18).
_HEADER_NAME = re.compile(rb"[A-Za-z0-9-]+")


class WsgiBridge:
    """An ASGI application for `http`; calls the WSGI application in one of `threads` threads.

    More than `places` requests at once are refused with 503, and a body that is longer than the
    `max_body_bytes` of its path with 413.
    """

    def __init__(
        self,
        application: WsgiApplication,
        *,
        threads: int,
        places: int,
        max_body_bytes: Callable[[str], int],
    ) -> None:
        self._call = cast(
            "Any", WSGIMiddleware(cast("Any", _complete(application)), workers=threads)
        )
        self._places = places
        self._max_body_bytes = max_body_bytes
        self._busy = 0

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        max_bytes = self._max_body_bytes(scope["path"])
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as body:
            length = 0
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                length += body.write(message["body"])
                if length > max_bytes:
                    fault = f"the body is longer than {max_bytes} bytes"
                    await send_answer(malformed(fault, CONTENT_TOO_LARGE), send)
                    return
                if not message["more_body"]:
                    break
            body.seek(0)
            if self._busy >= self._places:
                await send_answer(unavailable(), send)
                return
            self._busy += 1
            try:
                await self._answer(scope, body, length, receive, send)
            finally:
                self._busy -= 1

    async def _answer(self, scope: Scope, body: Any, length: int, receive: Any, send: Any) -> None:
        headers = [*_translatable(scope["headers"], length)]
        inner = {**scope, "headers": headers, _BODY: body, _IS_GONE: False}

        async def send_with_reason(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["reason"] = inner[_REASON]
            await send(message)

        watching = asyncio.ensure_future(_watch(receive, inner))
        try:
            await self._call(inner, receive, send_with_reason)
        finally:
            watching.cancel()


async def _watch(receive: Any, scope: Scope) -> None:
    """After a whole request nothing is received but the end of the connection or of the answer."""
    await receive()
    scope[_IS_GONE] = True


def _until_gone(chunks: Iterable[bytes], scope: Scope) -> Iterator[bytes]:
    """The answer as long as somebody reads it: an export may have millions of rows."""
    close = getattr(chunks, "close", lambda: None)
    try:
        for chunk in chunks:
            yield chunk
            if scope[_IS_GONE]:
                return
    finally:
        close()


def _translatable(
    headers: Iterable[tuple[bytes, bytes]], length: int
) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers:
        if _HEADER_NAME.fullmatch(name) and name not in (b"content-length", b"transfer-encoding"):
            yield name, value
    yield b"content-length", str(length).encode()


def _complete(application: WsgiApplication) -> WsgiApplication:
    """Adds the body, the reason phrase, and an answer where Django's request cannot be made.

    Django reads the Content-Type in the constructor of its request, outside its handling of
    errors: a charset that cannot be decoded raises there.
    """

    def call(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        scope = environ["asgi.scope"]
        environ["wsgi.input"] = scope[_BODY]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            scope[_REASON] = status.partition(" ")[2].encode("latin-1")
            return start_response(status, headers, exc_info)

        try:
            return _until_gone(application(environ, start), scope)
        except Exception:  # noqa: BLE001 - Django itself answers what fails after its constructor
            return _wsgi_answer(malformed("its Content-Type or query cannot be read"), start)

    return call


def _wsgi_answer(answer: Answer, start: Callable[..., Any]) -> Iterable[bytes]:
    status = f"{answer.status} {answer.reason.decode()}"
    start(status, [(name.decode(), value.decode()) for name, value in answer.headers])
    return io.BytesIO(answer.body)
