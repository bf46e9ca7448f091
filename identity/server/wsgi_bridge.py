"""Django's synchronous pages under the event loop: in threads, each with a whole request.

a2wsgi translates; this adds what it leaves out: the reason phrase, a limit, a body that is read
before a thread is occupied, and the end of an answer that its client reads no more.
"""

import asyncio
import contextlib
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from a2wsgi import WSGIMiddleware

from identity.server.answers import malformed
from identity.server.limits import BUFFERED_BODY_BYTES
from identity.server.overload import Body, Gone, LongBodiesOf, Places, Scope, TooLong, begin_body
from tokens.answers.response import Answer

Environ = dict[str, Any]
WsgiApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# What passes the translation: the body, the reason phrase, and whether the client has gone.
_BODY, _REASON, _IS_GONE = "identity.body", "identity.reason", "identity.is_gone"
# With an underscore, X_Forwarded_For and X-Forwarded-For would be one key (RFC 3875 4.1.18).
_HEADER_NAME = re.compile(rb"[A-Za-z0-9-]+")


class WsgiBridge:
    """An ASGI application for `http`; calls the WSGI application in one of `threads` threads.

    Raises NoPlace if `places` requests are in progress, and TooLong for a body that is longer than
    BUFFERED_BODY_BYTES, unless `long_bodies` has something else for the request.
    """

    def __init__(
        self,
        application: WsgiApplication,
        *,
        threads: int,
        places: int,
        long_bodies: LongBodiesOf,
    ) -> None:
        self._wsgi = WSGIMiddleware(cast("Any", _complete(application)), workers=threads)
        self._places = Places(places)
        self._long_bodies = long_bodies

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        with contextlib.suppress(Gone):
            begun, is_whole = await begin_body(receive)
            if is_whole and len(begun) <= BUFFERED_BODY_BYTES:
                await self._answer(scope, (io.BytesIO(begun), len(begun)), receive, send)
                return
            long_bodies = self._long_bodies(scope)
            if long_bodies is None:
                raise TooLong(BUFFERED_BODY_BYTES)
            with self._places:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._wsgi.executor, long_bodies.check, scope)
            async with long_bodies.file(begun, receive, is_whole=is_whole) as body:
                await self._answer(scope, body, receive, send)

    async def _answer(self, scope: Scope, body: Body, receive: Any, send: Any) -> None:
        file, length = body
        headers = [*_translatable(scope["headers"], length)]
        inner = {**scope, "headers": headers, _BODY: file, _IS_GONE: False}

        async def send_with_reason(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["reason"] = inner[_REASON]
            await send(message)

        with self._places:
            watching = asyncio.ensure_future(_watch(receive, inner))
            try:
                await cast("Any", self._wsgi)(inner, receive, send_with_reason)
            finally:
                watching.cancel()


async def _watch(receive: Any, scope: Scope) -> None:
    """After a whole request nothing is received but the end of the connection or of the answer."""
    await receive()
    scope[_IS_GONE] = True


def _until_gone(chunks: Iterable[bytes], scope: Scope) -> Iterator[bytes]:
    """The answer as long as the client reads it: an export may have millions of rows."""
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
    start(f"{answer.status} {answer.reason}", [*answer.headers.items()])
    return io.BytesIO(answer.body)
