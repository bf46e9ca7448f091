"""The first bytes of an answer: status line and headers (RFC 9112 sections 4 and 5). Pure."""

from collections.abc import Iterable
from http import HTTPStatus

from identity.server.answers import ServerAnswer

_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}

HeaderItems = Iterable[tuple[bytes, bytes]]


class InvalidHeader(Exception):
    """A name, value or reason phrase of the application has a line break or a NUL."""


def head(status: int, reason: bytes | None, headers: HeaderItems) -> bytes:
    """Status line and headers, with the empty line after them. Raises InvalidHeader."""
    phrase = _PHRASES.get(status, b"") if reason is None else reason
    lines = [b"HTTP/1.1 %d %b" % (status, phrase)]
    lines += [b"%b: %b" % item for item in headers]
    lines += (b"", b"")
    block = b"\r\n".join(lines)
    # One pass over the block, instead of one over each name and value.
    breaks = len(lines) - 1
    if block.count(b"\n") != breaks or block.count(b"\r") != breaks or b"\0" in block:
        raise InvalidHeader
    return block


def last_answer(answer: ServerAnswer, default_headers: HeaderItems) -> bytes:
    """The whole answer, after which the connection is closed."""
    headers = [*default_headers, *answer.headers, (b"Connection", b"close")]
    return head(answer.status, answer.reason, headers) + answer.body
