"""Raw bytes to a server and what comes back, for requests that no HTTP library would send."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_STATUS_LINE = re.compile(r"HTTP/1\.1 ([1-5]\d\d) ([\x20-\x7E]*)")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7E]*)")
_START = b"HTTP/1.1 "


class NotAnAnswer(Exception):
    """The server sent what no client can read."""


@dataclass(frozen=True)
class WireAnswer:
    status: int
    reason: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextlib.contextmanager
def connected(url: str, timeout: float = 30) -> Iterator[socket.socket]:
    host, port = urlsplit(url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        yield connection


def send_all(url: str, *parts: bytes, end: bool = False) -> list[WireAnswer]:
    """Every answer to these bytes, until the server closes."""
    with connected(url) as connection:
        for part in parts:
            connection.sendall(part)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return answers_in(read_to_end(connection))


def read_to_end(connection: socket.socket) -> bytes:
    received = bytearray()
    while chunk := connection.recv(65536):
        received += chunk
    return bytes(received)


def read_answer(connection: socket.socket) -> WireAnswer:
    """The next answer; the connection stays open. Raises EOFError if the server closes instead."""
    received = bytearray()
    while not (answers := answers_in(bytes(received))):
        chunk = connection.recv(65536)
        if not chunk:
            raise EOFError(f"closed after {bytes(received)!r}")
        received += chunk
    return answers[0]


def answers_in(received: bytes) -> list[WireAnswer]:
    """The whole answers that these bytes contain, none of them to HEAD. Raises NotAnAnswer."""
    answers = []
    while found := next_answer(received, has_body=True, is_closed=False):
        answers.append(found[0])
        received = received[found[1] :]
    return answers


def next_answer(
    received: bytes, *, has_body: bool | None, is_closed: bool
) -> tuple[WireAnswer, int] | None:
    """The first answer and its length in bytes, as a strict client reads it (RFC 9112).

    None if it is not complete. `has_body`: False for an answer to HEAD, None if that is not known.
    Raises NotAnAnswer.
    """
    end = received.find(b"\r\n\r\n")
    if end < 0:
        if not received.startswith(_START[: len(received)]):
            raise NotAnAnswer(f"{received[:200]!r}")
        return None
    status_line, *lines = received[:end].decode("latin-1").split("\r\n")
    match = _STATUS_LINE.fullmatch(status_line)
    fields = [_HEADER.fullmatch(line) for line in lines]
    if match is None or None in fields:
        raise NotAnAnswer(f"{received[: end + 4]!r}")
    headers = {field[1].lower(): field[2] for field in fields if field}
    status, body_start = int(match[1]), end + 4
    if has_body is False and headers.get("connection") == "close":
        has_body = None  # a refusal of what could not be read, perhaps not even its method
    is_empty = has_body is False or status < 200 or status in (204, 304)
    if has_body is None and not is_empty:
        rest = received[body_start : body_start + len(_START)]
        is_empty = rest == _START or (is_closed and not rest)
    found = (b"", body_start) if is_empty else _body(received, body_start, headers, is_closed)
    if found is None:
        return None
    body, length = found
    return WireAnswer(status, match[2], headers, body), length


def _body(
    received: bytes, start: int, headers: dict[str, str], is_closed: bool
) -> tuple[bytes, int] | None:
    if headers.get("transfer-encoding") == "chunked":
        return _chunks(received, start)
    if "content-length" not in headers:
        return (received[start:], len(received)) if is_closed else None
    end = start + int(headers["content-length"])
    return (received[start:end], end) if len(received) >= end else None


def _chunks(received: bytes, start: int) -> tuple[bytes, int] | None:
    body = b""
    while (line_end := received.find(b"\r\n", start)) >= 0:
        try:
            size = int(received[start:line_end], 16)
        except ValueError:
            raise NotAnAnswer(f"chunk {received[start:line_end]!r}") from None
        start = line_end + 2 + size + 2
        if len(received) < start:
            return None
        if not size:
            return body, start
        body += received[line_end + 2 : start - 2]
    return None
