"""`GET /health/ready` and `GET /health` with a deadline: answered while the database hangs, too.

The checks run in one separate thread. While they hang there, every further request waits for
the same checks, so that nothing piles up.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db import close_old_connections
from prometheus_client import Gauge

from identity.health import public_body, readiness_body
from identity.readiness import is_ready, readiness, without_answer
from taxpayers.shut_down import answered_within
from tokens.metrics import COUNTED

_DEADLINE_SECONDS = 1.5
# Then the checks have failed, and the next request has them run on another connection.
_GIVE_UP_SECONDS = 4.0
# Anyone may ask: however often they do, the database is asked no more often than this.
_PUBLIC_SECONDS = 5.0

Result = TypeVar("Result")

node_is_ready = Gauge(
    "node_ready",
    "Whether a login can be answered: 1, or 0 if a check of /health/ready fails.",
    multiprocess_mode="livemostrecent",  # not the 0 that the master begins with
    registry=COUNTED,
)


class Readiness:
    """An ASGI application for GET and HEAD."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._checks: dict[str, str] = {}  # filled by the thread, one after the other
        self._running: asyncio.Future[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        checks = await self.checks()
        await _answer(is_ready(checks), readiness_body(checks), send)

    async def checks(self) -> dict[str, str]:
        """Each check and its result, within the deadline."""
        if self._running is None or self._running.done():
            checks = self._checks = dict[str, str]()  # not those of the next time
            check = self.in_thread(lambda: checks.update(readiness(datetime.now(UTC))))
            self._running = asyncio.ensure_future(check)
        # While it waits, another caller may start anew.
        running, found = self._running, self._checks
        await asyncio.wait({running}, timeout=_DEADLINE_SECONDS)
        result = dict(found) if running.done() else without_answer(found, _DEADLINE_SECONDS)
        node_is_ready.set(is_ready(result))
        return result

    async def in_thread(self, function: Callable[[], Result]) -> Result:
        """What the function returns, after the checks that are running; with the same deadline."""

        def with_deadline() -> Result:
            with answered_within(_GIVE_UP_SECONDS):
                try:
                    return function()
                finally:
                    close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._thread, with_deadline)


class PublicStatus:
    """The same for everybody: only whether all of them passed, as of a few seconds ago."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._is_ready, self._good_until = False, 0.0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._good_until:
            self._is_ready = is_ready(await self._readiness.checks())
            self._good_until = now + _PUBLIC_SECONDS
        await _answer(self._is_ready, public_body(self._is_ready), send)


async def _answer(passed: bool, body: bytes, send: Any) -> None:
    headers = [
        (b"Content-Type", b"application/json"),
        (b"Cache-Control", b"no-store"),
        (b"Content-Length", str(len(body)).encode()),
    ]
    status = 200 if passed else 503
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
