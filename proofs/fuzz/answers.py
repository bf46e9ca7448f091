"""Answers as a strict client reads them from the bytes of a connection (RFC 9112)."""

import re

from tests.servers.wire import WireAnswer

_STATUS_LINE = re.compile(r"HTTP/1\.1 ([1-5]\d\d) ([\x20-\x7E]*)")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7E]*)")
_START = b"HTTP/1.1 "


class NotAnAnswer(Exception):
    """The server sent what no client can read."""


def next_answer(
    received: bytes, *, has_body: bool | None, is_closed: bool
) -> tuple[WireAnswer, int] | None:
    """The first answer and its length in bytes; None if it is not complete.

    `has_body`: False for an answer to HEAD, None if that is not known. Raises NotAnAnswer.
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
