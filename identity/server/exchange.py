"""One request and its answer, between the connection and the ASGI application."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from identity.server.answers import Headers, head, server_error, unavailable
from tokens.answers.response import WHOLE_ANSWER, Answer

logger = logging.getLogger("identity.server")

Message = dict[str, Any]
Application = Callable[..., Any]

_WITHOUT_BODY = (204, 304)


class Client(Protocol):
    loop: asyncio.AbstractEventLoop
    transport: Any
    flow: FlowControl
    server_state: ServerState

    def may_stay_open(self) -> bool: ...
    def write(self, answer: Answer, *, closes: bool, has_body: bool) -> None: ...
    def write_last(self, answer: Answer) -> None: ...
    def abort(self) -> None: ...
    def on_exchange_complete(self, exchange: "Exchange") -> None: ...


class Exchange:
    """Calls the application with one request, and writes what it sends.

    `http.response.start` may have the key `reason`, the reason phrase as bytes. A WHOLE_ANSWER is
    instead of all messages of ASGI; none of its headers is about the connection.
    """

    __slots__ = (
        *("body", "connection", "disconnected", "is_chunked", "is_request_read", "keep_alive"),
        *("more_body", "missing", "pending_head", "received", "response_complete"),
        *("response_started", "scope", "started_at", "waiter"),
    )

    def __init__(self, connection: Client, scope: Message, keep_alive: bool) -> None:
        self.connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        self.disconnected = False
        self.started_at = 0.0
        # The request.
        self.body = bytearray()
        self.received = 0
        self.more_body = True
        self.is_request_read = False
        self.waiter: asyncio.Future[None] | None = None
        # The answer.
        self.response_started = False
        self.response_complete = False
        self.pending_head = b""
        self.is_chunked = False
        self.missing: int | None = None

    async def run(self, application: Application) -> None:
        """The whole exchange. Never raises."""
        answer = server_error
        try:
            await application(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            answer = unavailable  # the server stops, and this took too long
        except Exception:
            logger.exception("the application failed", extra={"path": self.scope.get("path")})
        if not self.response_complete and not self.disconnected:
            self._fail(answer())

    def _fail(self, answer: Answer) -> None:
        if self.response_started and not self.pending_head:
            self.response_complete = True
            self.connection.abort()  # the client must see that the answer is not whole
            return
        self.pending_head = b""
        self.write_last(answer)

    def write_last(self, answer: Answer) -> None:
        """Answer without the application, and close."""
        self.response_started = self.response_complete = True
        self.keep_alive = False
        self.connection.write_last(answer)

    # --- For the connection -----------------------------------------------------------------------

    def wake(self) -> None:
        """Something happened that the application may be waiting for."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def disconnect(self) -> None:
        """The application gets no more of the request, and what it sends is dropped."""
        self.disconnected = True
        self.wake()

    # --- ASGI -------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """`http.request` with what has arrived, or `http.disconnect`."""
        while not (self.disconnected or self.response_complete):
            if self.body or not (self.more_body or self.is_request_read):
                body, self.body = bytes(self.body), bytearray()
                self.is_request_read = not self.more_body
                return {"type": "http.request", "body": body, "more_body": self.more_body}
            self.connection.flow.resume_reading()
            self.waiter = self.connection.loop.create_future()
            await self.waiter
            self.waiter = None
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Raises RuntimeError for messages that ASGI does not allow here."""
        if self.connection.flow.write_paused and not self.disconnected:
            await self.connection.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == WHOLE_ANSWER and not self.response_started:
            self._write_whole(message["answer"])
            return
        if self.response_complete or kind != (
            "http.response.body" if self.response_started else "http.response.start"
        ):
            raise RuntimeError(f"unexpected ASGI message {kind!r}")
        if self.response_started:
            self._write_body(message.get("body", b""), message.get("more_body", False))
        else:
            self.pending_head = self._head(message)
            self.response_started = True

    def _write_whole(self, answer: Answer) -> None:
        self.keep_alive = self.keep_alive and self.connection.may_stay_open()
        has_body = self._may_have_body(answer.status)
        self.connection.write(answer, closes=not self.keep_alive, has_body=has_body)
        self.response_started = self.response_complete = True
        self.connection.on_exchange_complete(self)

    def _head(self, message: Message) -> bytes:
        status, headers = message["status"], [*self.connection.server_state.default_headers]
        headers += self._end_to_end(message.get("headers", ()))
        if not self._may_have_body(status):
            self.missing = 0
        elif self.missing is None:
            headers += self._frame_unknown_length()
        self.keep_alive = self.keep_alive and self.connection.may_stay_open()
        if not self.keep_alive:
            headers.append((b"Connection", b"close"))
        return head(status, message.get("reason"), headers)

    def _may_have_body(self, status: int) -> bool:
        return self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY

    def _end_to_end(self, headers: Headers) -> Iterator[tuple[bytes, bytes]]:
        """The headers of the application, without those about the connection: they are ours."""
        for name, value in headers:
            lowered = name.lower()
            if lowered == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
            elif lowered != b"transfer-encoding":
                if lowered == b"content-length":
                    self.missing = int(value)
                yield name, value

    def _frame_unknown_length(self) -> Headers:
        if self.scope["http_version"] == "1.1":
            self.is_chunked = True
            return [(b"Transfer-Encoding", b"chunked")]
        self.keep_alive = False  # the end of the connection is the end of the answer
        return []

    def _write_body(self, body: bytes, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            body = b""
        elif self.missing is not None:
            self.missing -= len(body)
            if self.missing < 0 or (self.missing and not more_body):
                raise RuntimeError("the body does not have the length of Content-Length")
        elif self.is_chunked and body:
            body = b"%x\r\n%b\r\n" % (len(body), body)
        if self.is_chunked and not more_body:
            body += b"0\r\n\r\n"
        if self.pending_head or body:
            self.connection.transport.write(self.pending_head + body)
            self.pending_head = b""
        if not more_body:
            self.response_complete = True
            self.connection.on_exchange_complete(self)
