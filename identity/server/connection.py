"""One connection of a client: uvicorn's protocol class, with an answer to every request.

Adds the reason phrase, deadlines, limits, and JSON for what the parser refuses (RFC 9112).
"""

import asyncio
import logging
from enum import Enum, auto
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from identity.server import limits
from identity.server.answers import REQUEST_TIMEOUT, Answer, malformed, unavailable
from identity.server.exchange import Exchange
from identity.server.overload import connection_limit, has_room, refuse
from identity.server.wire import last_answer

logger = logging.getLogger("identity.server")


class Reading(Enum):
    """Which part of a request the parser waits for."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class Fault(Exception):
    """Raised inside the parser to stop it; the message is for the client."""


class Connection(HttpToolsProtocol):
    """Reads requests, one `Exchange` each, and answers them in their order."""

    cycle: Exchange | None  # type: ignore[assignment]  # the latest
    transport: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reading = Reading.NOTHING
        self.current: Exchange | None = None  # the one that the application works on
        self.waiting: list[Exchange] = []  # pipelined behind it
        self.last: Answer | None = None  # to be written after those
        self.fault: str = ""
        self.header_bytes = self.dropped_bytes = 0
        self.read_deadline = self.idle_deadline = self.close_deadline = 0.0
        self.write_deadline: float | None = None
        self.is_lingering = self.is_stopping = self.is_replaying = False

    # --- The connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        seconds = limits.IDLE_SECONDS if self._is_welcome() else limits.IDLE_SECONDS_WHEN_FULL
        self.idle_deadline = self.loop.time() + seconds

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        for exchange in (self.current, self.cycle):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnect()
        self.waiting.clear()
        self.flow.resume_writing()
        self.parser = None  # type: ignore[assignment]

    def eof_received(self) -> bool:  # type: ignore[override]
        """Returns whether the connection stays open, for the answers that are still to come."""
        if self.is_lingering:
            return False
        if self.last is not None:
            return True
        if self.reading is not Reading.NOTHING:
            self.refuse(malformed("the connection ended before it was complete"))
            return True
        if self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        return True

    def shutdown(self) -> None:
        """The server stops: an idle connection may bring one more request before it ends."""
        self.is_stopping = True
        soon = self.loop.time() + limits.IDLE_SECONDS_WHEN_STOPPING
        self.idle_deadline = min(self.idle_deadline, soon) if self._is_idle() else soon

    def may_stay_open(self) -> bool:
        """Whether the answer that is written next may be followed by another request."""
        return bool(self.waiting) or (not self.is_stopping and self._is_welcome())

    def _is_welcome(self) -> bool:
        return len(self.connections) <= connection_limit()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return self.server_state.default_headers

    def pause_writing(self) -> None:
        self.write_deadline = self.loop.time() + limits.WRITE_SECONDS
        super().pause_writing()

    def resume_writing(self) -> None:
        self.write_deadline = None
        super().resume_writing()

    def resume_reading(self) -> None:
        """Called when the application wants more of the body."""
        self.flow.resume_reading()

    # --- Requests ---------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.is_lingering or self.last is not None:
            return
        if self.reading is Reading.NOTHING:
            self._begin_headers()
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self.refuse(malformed(self.fault or _parser_fault(error)))
            return
        if self.reading is Reading.HEADERS:
            self.header_bytes += len(data)
            if self.header_bytes > limits.MAX_HEADER_BYTES:
                self.refuse(malformed(_HEADERS_TOO_LONG))

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self.is_replaying:
                raise httptools.HttpParserError("CONNECT is not supported") from None
            # The client offers another protocol (Java offers HTTP/2 so). We go on with HTTP/1.1,
            # with a new parser, since this one has stopped before the body.
            self.is_replaying = False
            request, self.header_bytes = self._without_upgrade(), 0
            self.parser = httptools.HttpRequestParser(self)
            self.parser.feed_data(request + data[upgrade.args[0] :])

    def _without_upgrade(self) -> bytes:
        closes = any(n == b"connection" and b"close" in v.lower() for n, v in self.headers)
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % (n, v) for n, v in self.headers if n not in _HOP_BY_HOP]
        lines += [b"connection: close"] if closes else []
        return b"\r\n".join([*lines, b"", b""])

    def _begin_headers(self) -> None:
        self.reading, self.header_bytes = Reading.HEADERS, 0
        self.read_deadline = self.loop.time() + limits.HEADER_SECONDS

    def on_message_begin(self) -> None:
        if self.reading is Reading.NOTHING:  # another request in the same bytes
            self._begin_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self.is_lingering:
            self._stop_parser("")
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self.is_replaying = True
            return
        version = self.parser.get_http_version()
        self._check_size()
        self._check_framing(version)
        self._complete_scope(version)
        self.reading = Reading.BODY
        self.read_deadline = self.loop.time() + limits.BODY_SECONDS
        keep_alive = version == "1.1" and self.parser.should_keep_alive()
        self.cycle = Exchange(self, self.scope, keep_alive)  # type: ignore[arg-type]
        if self.current is None:
            if self.expect_100_continue:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif len(self.waiting) >= limits.MAX_PIPELINED:
            self._stop_parser("too many requests were sent without waiting for an answer")

    def _check_size(self) -> None:
        if len(self.headers) > limits.MAX_HEADERS:
            self._stop_parser(f"it has more than {limits.MAX_HEADERS} headers")
        # Headers that came in one piece; data_received counts those that come in several.
        if sum(len(name) + len(value) for name, value in self.headers) > limits.MAX_HEADER_BYTES:
            self._stop_parser(_HEADERS_TOO_LONG)

    def _check_framing(self, version: str) -> None:
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if codings and (version != "1.1" or codings[0].strip().lower() != b"chunked"):
            self._stop_parser("its Transfer-Encoding is not chunked, or not of HTTP/1.1")
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and version == "1.1"):
            self._stop_parser("it must have one Host header")

    def _complete_scope(self, version: str) -> None:
        url = httptools.parse_url(self.url)
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = raw_path
        scope["query_string"] = url.query or b""

    def _stop_parser(self, fault: str) -> None:
        self.fault = fault
        raise Fault(fault)

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if exchange is None or self.is_replaying:
            return
        if exchange.response_complete or exchange.disconnected:
            self.dropped_bytes += len(body)
            if self.dropped_bytes > limits.MAX_DROPPED_BYTES:
                self.linger()
            return
        exchange.body += body
        exchange.received += len(body)
        self.read_deadline += len(body) / limits.BODY_BYTES_PER_SECOND
        if exchange.received > limits.BUFFERED_BODY_BYTES:
            self._offer(exchange)
            if len(exchange.body) > 4 * limits.BUFFERED_BODY_BYTES:
                self.flow.pause_reading()
            exchange.wake()

    def on_message_complete(self) -> None:
        if self.is_replaying:
            return
        self.reading = Reading.NOTHING
        exchange = self.cycle
        if exchange is None or exchange.response_complete:
            return
        exchange.more_body = False
        self._offer(exchange)
        exchange.wake()

    # --- Answers ----------------------------------------------------------------------------------

    def _offer(self, exchange: Exchange) -> None:
        """Let the application begin, or the exchange wait for those before it."""
        if self.current is exchange or exchange in self.waiting:
            return
        if self.current is None:
            self._start(exchange)
        else:
            self.waiting.append(exchange)
            self.flow.pause_reading()

    def _start(self, exchange: Exchange) -> None:
        self.current = exchange
        exchange.started_at = self.loop.time()
        application = self.app if has_room(self.server_state, exchange.scope) else refuse
        task = self.loop.create_task(exchange.run(application))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_exchange_complete(self, exchange: Exchange) -> None:
        """Goes on with the next request, or waits for it, or closes."""
        self.server_state.total_requests += 1
        self.current = None
        if self.transport.is_closing():
            return
        if self.waiting and exchange.keep_alive:
            self._start(self.waiting.pop(0))
        elif self.last is not None:
            self.write_last(self.last)
        elif not exchange.keep_alive:
            self.linger()
        else:
            self._set_idle_deadline()
            self.flow.resume_reading()

    def _set_idle_deadline(self) -> None:
        self.idle_deadline = self.loop.time() + limits.IDLE_SECONDS
        self.dropped_bytes = 0

    def _is_idle(self) -> bool:
        return self.reading is Reading.NOTHING and self.current is None

    def refuse(self, answer: Answer) -> None:
        """Answer a request that cannot be passed on, after those before it, and close."""
        if self.is_lingering:
            return
        faulty = self.cycle if self.reading is Reading.BODY else None
        if faulty is not None and faulty.response_started:
            self.linger()  # it has its answer
        elif faulty is not None and faulty is self.current:
            faulty.disconnect()
            faulty.write_last(answer)
        else:
            if faulty in self.waiting:
                self.waiting.remove(faulty)
            self.last = answer
            if self.current is None:
                self.write_last(answer)

    def write_last(self, answer: Answer) -> None:
        """Write this answer, and nothing after it."""
        self.transport.write(last_answer(answer, self.default_headers))
        self.linger()

    def linger(self) -> None:
        """Close, but let the client read the last answer first."""
        if self.is_lingering or self.transport.is_closing():
            return
        self.is_lingering = True
        self.close_deadline = self.loop.time() + limits.LINGER_SECONDS
        self.flow.resume_reading()
        self.transport.write_eof()

    def abort(self) -> None:
        """Close at once, with a reset if something is unsent."""
        self.transport.abort()

    # --- Deadlines --------------------------------------------------------------------------------

    def enforce_deadlines(self, now: float) -> None:
        """Called about twice a second for every connection: cheaper than timers of their own."""
        if self.is_lingering or self.transport.is_closing():
            self._end_after(self.close_deadline, now)
        elif self.write_deadline is not None:
            self._end_after(self.write_deadline, now)
        elif self.flow.read_paused:
            self.read_deadline = max(self.read_deadline, now + limits.BODY_SECONDS)
            self._enforce_answer(now)
        elif self.reading is not Reading.NOTHING:
            self._enforce_request(now)
        elif self.current is not None:
            self._enforce_answer(now)
        else:
            self._end_after(self.idle_deadline, now)

    def _enforce_request(self, now: float) -> None:
        if now > self.read_deadline:
            part = "headers" if self.reading is Reading.HEADERS else "body"
            self.refuse(malformed(f"its {part} took too long to arrive", REQUEST_TIMEOUT))

    def _enforce_answer(self, now: float) -> None:
        exchange = self.current
        if exchange is None or exchange.response_started:
            return
        if now > exchange.started_at + limits.ANSWER_SECONDS:
            exchange.disconnect()
            exchange.write_last(unavailable())

    def _end_after(self, deadline: float, now: float) -> None:
        if now <= deadline:
            return
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not read
        else:
            self.transport.close()


_HEADERS_TOO_LONG = f"its headers are longer than {limits.MAX_HEADER_BYTES} bytes"
_HOP_BY_HOP = (b"connection", b"upgrade", b"http2-settings")


def _parser_fault(error: httptools.HttpParserError) -> str:
    return f"it is not HTTP/1.1 ({error})"
