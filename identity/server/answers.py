"""The answers that the server gives without the application: JSON with a reference (contract 1)."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from http import HTTPStatus

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from taxpayers.rules import Refused
from tokens.answers.response import Answer, refused_answer
from tokens.refusals.table import ProtocolReason

logger = logging.getLogger("identity.server")

REQUEST_TIMEOUT = 408
CONTENT_TOO_LARGE = 413

Headers = list[tuple[bytes, bytes]]


def malformed(fault: str, status: int = 400) -> Answer:
    """The request is wrong, and the developer of the client must correct it."""
    return _answer(Refused(ProtocolReason.MALFORMED_REQUEST, detail=fault), status)


def malformed_on_behalf_of(fault: str) -> Answer:
    """What was meant as the header `onbehalfof` is none."""
    return _answer(Refused(ProtocolReason.MALFORMED_ON_BEHALF_OF, detail=fault))


def unavailable() -> Answer:
    """There is no room for the request now; it is answered with `Retry-After`."""
    return _answer(Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE))


def server_error() -> Answer:
    """The application failed; the reason is only in the log."""
    return _answer(Refused(ProtocolReason.SERVER_ERROR))


def _answer(refused: Refused, status: int | None = None) -> Answer:
    reference, now = str(uuid7()), datetime.now(UTC)
    answer = refused_answer(reference, now, refused)  # of the same shape as those of the login
    about = {"reference": reference, "outcome": refused.reason, "detail": refused.detail}
    logger.info("answered by the server", extra=about)
    return replace(answer, status=status or answer.status)


_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}

HeaderItems = Iterable[tuple[bytes, bytes]]


class InvalidHeader(Exception):
    """A name, value or reason phrase of the application has a line break or a NUL."""


def head(status: int, reason: bytes | None, headers: HeaderItems) -> bytes:
    """Status line and headers, with the empty line after them. Raises InvalidHeader."""
    phrase = _PHRASES.get(status, b"") if reason is None else reason
    return _block([b"HTTP/1.1 %d %b" % (status, phrase), *_lines(headers)])


def head_of(answer: Answer, default_headers: HeaderItems, *, closes: bool) -> bytes:
    """The same of a whole answer; `closes`: the connection ends after it. Raises InvalidHeader."""
    # All in one text: AUTH_URL, which is in some of them, may have any letter.
    own = "\r\n".join(map(": ".join, answer.headers.items())).encode()
    lines = [b"HTTP/1.1 %d %b" % (answer.status, answer.reason.encode())]
    lines += [*_lines(default_headers), own]
    if closes:
        lines.append(b"Connection: close")
    return _block(lines, len(answer.headers) - 1)


def _lines(headers: HeaderItems) -> list[bytes]:
    return [b"%b: %b" % item for item in headers]


def _block(lines: list[bytes], more_breaks: int = 0) -> bytes:
    block = b"\r\n".join((*lines, b"", b""))
    # One pass over the block, instead of one over each name and value.
    breaks = len(lines) + 1 + more_breaks
    if block.count(b"\n") != breaks or block.count(b"\r") != breaks or b"\0" in block:
        raise InvalidHeader
    return block
