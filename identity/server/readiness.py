"""`GET /health/ready` with a deadline: answered in time even while the database hangs.

The checks run in one separate thread. While they hang there, every further request waits for
the same checks, so that nothing piles up.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from django.db import close_old_connections

from identity.health import is_ready, readiness, readiness_body, without_answer
from taxpayers.shut_down import answered_within

_DEADLINE_SECONDS = 1.5
# Then the checks have failed, and the next request has them run on another connection.
_GIVE_UP_SECONDS = 4.0


class Readiness:
    """An ASGI application for GET and HEAD."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._checks: dict[str, str] = {}  # filled by the thread, one after the other
        self._running: asyncio.Future[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._running is None or self._running.done():
            self._checks = {}
            loop = asyncio.get_running_loop()
            self._running = loop.run_in_executor(self._thread, self._check, self._checks)
        await asyncio.wait({self._running}, timeout=_DEADLINE_SECONDS)
        is_late = not self._running.done()
        checks = dict(self._checks)
        if is_late:
            checks = without_answer(checks, _DEADLINE_SECONDS)
        await _answer(checks, send)

    def _check(self, checks: dict[str, str]) -> None:
        with answered_within(_GIVE_UP_SECONDS):
            try:
                checks.update(readiness(datetime.now(UTC)))
            finally:
                close_old_connections()


async def _answer(checks: dict[str, str], send: Any) -> None:
    body = readiness_body(checks)
    headers = [
        (b"Content-Type", b"application/json"),
        (b"Cache-Control", b"no-store"),
        (b"Content-Length", str(len(body)).encode()),
    ]
    status = 200 if is_ready(checks) else 503
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
