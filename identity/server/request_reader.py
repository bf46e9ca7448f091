"""The reading side of a connection: bytes become requests, or are refused (RFC 9112)."""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from identity.server import framing, limits
from identity.server.answers import malformed, malformed_on_behalf_of
from identity.server.exchange import Exchange
from tokens.answers.response import Answer
from tokens.request.on_behalf_of import spells_on_behalf_of

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Of a long body that the application has begun to read: more than this waits in the socket.
_READ_AHEAD_BYTES = 64 * 1024
# Letters that need no escape (RFC 3986 section 2.3), and the slash. Such a path is taken as
# it is written: rules of a proxy in front may compare that, so it must mean nothing else here.
_NEEDLESSLY_ESCAPED = re.compile(
    "%(2[DEF]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)", re.ASCII | re.IGNORECASE
)


class Awaited(Enum):
    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class Fault(Exception):
    """Raised inside the parser to stop it; the message is for the client."""


class RequestReader(HttpToolsProtocol):
    """Makes an `Exchange` of each request, and offers it when its body is there."""

    cycle: Exchange | None  # type: ignore[assignment]  # the latest
    transport: Any
    # Of the answering side.
    offer: Callable[[Exchange], None]
    refuse: Callable[[Answer], None]
    may_pipeline: Callable[[], bool]
    linger: Callable[[], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.awaited = Awaited.NOTHING
        self.fault = ""
        # Received of the headers, or since the last piece of the body.
        self.field_bytes = self.dropped_bytes = 0
        self.ignores_input = False  # nothing that arrives now is read

    # --- Bytes ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.ignores_input:
            return
        if self.awaited is Awaited.NOTHING:
            self._begin_headers()
        self.field_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self.refuse(self._refusal_of(data, error))
            return
        if self.awaited is not Awaited.NOTHING and self.field_bytes > limits.MAX_HEADER_BYTES:
            is_head = self.awaited is Awaited.HEADERS
            fault = framing.HEADERS_TOO_LONG if is_head else framing.TRAILER_TOO_LONG
            is_url = is_head and len(self.url) > limits.MAX_HEADER_BYTES
            self.refuse(malformed(framing.URL_TOO_LONG if is_url else fault))

    def _refusal_of(self, data: bytes, error: httptools.HttpParserError) -> Answer:
        if self.awaited is Awaited.HEADERS and framing.misspells_on_behalf_of(data):
            return malformed_on_behalf_of(framing.ON_BEHALF_OF_NOT_A_NAME)
        if self.fault == framing.ON_BEHALF_OF_IN_TRAILER:
            return malformed_on_behalf_of(self.fault)
        return malformed(self.fault or f"it is not HTTP/1.1 ({error})")

    def _feed(self, data: bytes) -> None:
        # Once for each offer in these bytes; `may_pipeline` bounds them.
        while data:
            try:
                self.parser.feed_data(data)
                data = b""
            except httptools.HttpParserUpgrade as upgrade:
                # The client offers another protocol, as Java offers HTTP/2. We go on with HTTP/1.1,
                # and with a new parser, because this one has stopped before the body.
                request = framing.without_upgrade(self.parser.get_method(), self.url, self.headers)
                self.field_bytes = 0
                self.parser = httptools.HttpRequestParser(self)
                data = request + data[upgrade.args[0] :]

    def _begin_headers(self) -> None:
        self.awaited, self.field_bytes = Awaited.HEADERS, 0
        self.read_deadline = self.loop.time() + limits.HEADER_SECONDS

    def _stop_parser(self, fault: str) -> None:
        self.fault = fault
        raise Fault(fault)

    # --- What the parser calls --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.awaited is Awaited.NOTHING:  # another request in the same bytes
            self._begin_headers()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.awaited is not Awaited.BODY:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
        # A trailer is dropped: it is none of the headers (RFC 9110 section 6.5.1), and a proxy that
        # replaces a header does not look for it here. A request that has its answer already gets no
        # second one: the connection would be closed under the requests behind it.
        elif spells_on_behalf_of(name) and not self._is_answered():
            self._stop_parser(framing.ON_BEHALF_OF_IN_TRAILER)

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_started

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self._stop_parser("CONNECT is not supported")
        if self.parser.should_upgrade():
            return  # `_feed` gives it to another parser
        version = self.parser.get_http_version()
        if fault := framing.fault_of(self.headers, version):
            self._stop_parser(fault)
        if not self.may_pipeline():
            self._stop_parser("too many requests were sent without waiting for an answer")
        self._complete_scope(version)
        keep_alive = version == "1.1" and self.parser.should_keep_alive()
        is_first = self.cycle is None or self.cycle.response_complete
        self.cycle = Exchange(self, self.scope, keep_alive)  # type: ignore[arg-type]
        self.awaited, self.field_bytes = Awaited.BODY, 0
        self.read_deadline = self.loop.time() + limits.BODY_SECONDS
        if self.expect_100_continue and is_first and version == "1.1":  # RFC 9110 section 10.1.1
            self.transport.write(_CONTINUE)

    def _complete_scope(self, version: str) -> None:
        if len(self.url) > limits.MAX_HEADER_BYTES:
            self._stop_parser(framing.URL_TOO_LONG)
        url = httptools.parse_url(self.url)
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        is_short = len(path) <= limits.MAX_PATH_LENGTH
        is_escaped = is_short and "%" in path and not _NEEDLESSLY_ESCAPED.search(path)
        scope["path"] = unquote(path) if is_escaped else path
        scope["raw_path"] = raw_path
        scope["query_string"] = url.query or b""

    def on_body(self, body: bytes) -> None:
        self.field_bytes = 0
        exchange = self.cycle
        if exchange is None or self.ignores_input:
            return
        if exchange.response_complete:
            self.dropped_bytes += len(body)
            if self.dropped_bytes > limits.MAX_DROPPED_BYTES:
                self.linger()
            return
        exchange.body += body
        exchange.received += len(body)
        self.read_deadline += len(body) / limits.BODY_BYTES_PER_SECOND
        if exchange.received > limits.BUFFERED_BODY_BYTES:
            self.offer(exchange)
            if len(exchange.body) > _READ_AHEAD_BYTES:
                self.flow.pause_reading()
            exchange.wake()

    def on_message_complete(self) -> None:
        exchange = self.cycle
        if self.ignores_input or exchange is None:
            return
        self.awaited, self.dropped_bytes = Awaited.NOTHING, 0
        if exchange.response_complete:
            return
        exchange.more_body = False
        self.offer(exchange)
        exchange.wake()
