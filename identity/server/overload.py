"""Who is let in when there is more to do than this process can: a bounded number of requests.

What is beyond it is answered at once, so that the requests that were let in stay fast.
"""

import resource
from functools import cache
from typing import Any

from django.conf import settings

from identity.server.answers import ServerAnswer, unavailable

LIVE = "/health/live"  # answered always
# Files that are no connections of clients: the database, metrics, modules that are being imported,
# and connections that are being refused.
_OTHER_FILES = 256


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


async def send_answer(answer: ServerAnswer, send: Any) -> None:
    """The answer as ASGI messages."""
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "reason": answer.reason,
            "headers": answer.headers,
        }
    )
    await send({"type": "http.response.body", "body": answer.body})
