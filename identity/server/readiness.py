"""`GET /health/ready` and `GET /health` with a deadline: answered while the database hangs, too.

The checks run in one separate thread. While they hang there, every further request waits for
the same checks, so that nothing piles up.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from django.db import close_old_connections

from identity.health import is_ready, public_body, readiness, readiness_body, without_answer
from taxpayers.shut_down import answered_within

_DEADLINE_SECONDS = 1.5
# Then the checks have failed, and the next request has them run on another connection.
_GIVE_UP_SECONDS = 4.0
# Everybody may ask: however often they do, the database is asked no more often than this.
_PUBLIC_SECONDS = 5.0


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
            self._checks = {}
            loop = asyncio.get_running_loop()
            self._running = loop.run_in_executor(self._thread, self._check, self._checks)
        await asyncio.wait({self._running}, timeout=_DEADLINE_SECONDS)
        is_late = not self._running.done()
        checks = dict(self._checks)
        return without_answer(checks, _DEADLINE_SECONDS) if is_late else checks

    def _check(self, checks: dict[str, str]) -> None:
        with answered_within(_GIVE_UP_SECONDS):
            try:
                checks.update(readiness(datetime.now(UTC)))
            finally:
                close_old_connections()


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
