"""Who is let in when there is more to do than this process can: a bounded number of requests.

They start in their order, and what is beyond the bound is answered at once, so that the requests
that were let in stay fast. Long bodies are taken from known callers, a few at a time, in separate
places: no slow one takes the place of a login, and places and length together are a bound of the
files that they fill.
"""

import asyncio
import resource
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import IO, Any

from django.conf import settings

from identity.server.answers import unavailable
from identity.server.limits import BUFFERED_BODY_BYTES
from tokens.answers.response import send_answer

LIVE = "/health/live"  # answered always
# Files that are no connections of clients: the database, metrics, modules that are being imported,
# and connections that are being refused.
_OTHER_FILES = 256
# With fewer in progress, requests start as they come; with more, so many in each turn of the loop.
_IN_PROGRESS, _EACH_TURN = 64, 4
# A login that started later would not be answered before its proxy gives up (deploy/nginx.conf).
MAX_WAIT_SECONDS = 3.0


class StartQueue:
    """Starts the requests of this process in their order; those in progress go on in between.

    Of thousands that come in one turn of the loop all would start in the next one, and most be
    refused; until then nothing would read the database's answers for the others: no tokens.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, in_progress: Collection[object]) -> None:
        self._loop, self._in_progress = loop, in_progress
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, start: Callable[[], None]) -> None:
        """Calls it now, or in one of the next turns."""
        if not self._waiting and len(self._in_progress) < _IN_PROGRESS:
            start()
            return
        if not self._waiting:
            self._loop.call_soon(self._next_turn)
        self._waiting.append(start)

    def _next_turn(self) -> None:
        following = [self._waiting.popleft() for _ in range(min(_EACH_TURN, len(self._waiting)))]
        if self._waiting:
            self._loop.call_soon(self._next_turn)
        for start in following:
            start()


class NotTaken(Exception):
    """A request that no application gets; `identity.doors` answers it in the address's format."""


class NoPlace(NotTaken):
    """As many requests of its kind are in progress as may be."""


class Places:
    """How many requests of one kind may be in progress at once."""

    def __init__(self, number: int) -> None:
        self._free = number

    def __enter__(self) -> None:
        """Takes one of them, until the end of the block. Raises NoPlace."""
        if not self._free:
            raise NoPlace
        self._free -= 1

    def __exit__(self, *_error: object) -> None:
        self._free += 1


@cache
def connection_limit() -> int:
    """How many connections this process holds; each of those that come later gets one 503."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(settings.WEB_CONNECTIONS, soft - _OTHER_FILES)


async def refuse_overload(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application that answers 503."""
    await send_answer(unavailable(), send)


Scope = dict[str, Any]
Body = tuple[IO[bytes], int]  # with its length

_IN_MEMORY_BYTES = 64 * 1024


class TooLong(NotTaken):
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
    check: Callable[[Scope], object]

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
