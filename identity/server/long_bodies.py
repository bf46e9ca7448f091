"""Bodies longer than what the server reads of any request: of known callers, a few at a time.

They have separate places, so that no slow one takes the place of a login; places and length
together are a bound of the files that they fill.
"""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any

from identity.server.limits import BUFFERED_BODY_BYTES
from identity.server.overload import NotTaken, Places

Scope = dict[str, Any]
Body = tuple[IO[bytes], int]  # with its length

_IN_MEMORY_BYTES = 64 * 1024


class TooLong(NotTaken):
    """The address takes no body of this length."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self.most_bytes = most_bytes


class NotSignedIn(NotTaken):
    """The address takes such a body from those only who are signed in."""


class Gone(Exception):
    """The client has gone before the end of its body."""


@dataclass(frozen=True, slots=True)
class LongBodies:
    """What some addresses take: of callers for which `check` raises nothing, so many bytes.

    `check` is called in a thread, before more is read than of any request. It raises NotTaken.
    """

    most_bytes: int
    places: Places
    check: Callable[[Scope], None]

    @asynccontextmanager
    async def file(self, begun: bytes, receive: Any, *, is_whole: bool) -> AsyncIterator[Body]:
        """The whole body. Raises NoPlace, TooLong or Gone."""
        with self.places, tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as file:
            length = file.write(begun)
            while not is_whole or length > self.most_bytes:
                if length > self.most_bytes:
                    raise TooLong(self.most_bytes)
                part, is_whole = await _part(receive)
                length += file.write(part)
            file.seek(0)
            yield file, length


# What a request may send; None: no more than any other.
LongBodiesOf = Callable[[Scope], LongBodies | None]


def no_long_bodies(scope: Scope) -> None:
    """Where neither staff pages nor the management API are served."""


def header_of(scope: Scope, name: bytes) -> str:
    """The first one of this name (in lower case); empty if there is none."""
    return next((value.decode("latin-1") for n, value in scope["headers"] if n == name), "")


async def begin_body(receive: Any) -> tuple[bytes, bool]:
    """What is read of every body, and whether it is the whole body. Raises Gone."""
    begun, is_whole = await _part(receive)
    while not is_whole and len(begun) <= BUFFERED_BODY_BYTES:
        part, is_whole = await _part(receive)
        begun += part
    return begun, is_whole


async def _part(receive: Any) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message["body"], not message["more_body"]
