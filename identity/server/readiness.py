"""Whether this node can serve: `GET /health/ready` and `GET /health` with a deadline, and its door.

The checks run in one separate thread. While they hang there, every further request waits for
the same checks, so that nothing piles up. A node that cannot serve while others do closes its door,
so that no login is sent to it: it refuses quickest, so the proxy would send it most of them. A
fault that all nodes share closes none: a node closes only while others issue tokens. Nothing that a
client does is such a fault.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar

from django.db import close_old_connections
from django.http import HttpResponse
from prometheus_client import Gauge

from identity.health import public_answer
from identity.readiness import is_ready, is_served_elsewhere, own_fault, readiness, without_answer
from identity.server.listener import Listener
from taxpayers.shut_down import answered_within
from tokens.metrics import COUNTED, issued_by_this_node
from tokens.uptime import uptime

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
    """The checks of this process, one run of them at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._running: asyncio.Future[None] | None = None

    async def checks(self) -> dict[str, str]:
        """Each check and its result, within the deadline."""
        if self._running is None or self._running.done():
            # Filled by the thread, one after the other; not those of the next time.
            checks = self._checks = dict[str, str]()
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

    async def answer(self) -> HttpResponse:
        now = asyncio.get_running_loop().time()
        if now >= self._good_until:
            self._is_ready = is_ready(await self._readiness.checks())
            self._good_until = now + _PUBLIC_SECONDS
        return public_answer(self._is_ready)


logger = logging.getLogger("identity.server")

_EVERY_SECONDS = 3.0
# In this time after the fault the other nodes find out whether they have it as well.
_BEGIN_SECONDS, _WINDOW_SECONDS = 3.0, 10.0


class Closing:
    """Looks at readiness again and again; one for each process, all of which decide the same."""

    def __init__(
        self, readiness: Readiness, doors: Sequence[Listener], say_goodbye: Callable[[], None]
    ) -> None:
        self._readiness = readiness
        self._doors = doors
        self._say_goodbye = say_goodbye
        self._since: float | None = None  # when the fault was found, and what was issued by then
        self._issued = 0.0

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self._look()
            except Exception:
                logger.exception("whether to accept connections was not decided")
            await asyncio.sleep(_EVERY_SECONDS)

    async def _look(self) -> None:
        fault: str | None = None
        if not is_ready(await self._readiness.checks()):
            # An outage that all nodes share; it must find them open.
            with contextlib.suppress(Exception):
                fault = await self._readiness.in_thread(self._reason_to_close)
        else:
            self._since = None
        for door in self._doors:
            if fault is None and door.open():
                logger.warning("connections are accepted again")
            if fault is not None and await door.close_for_now():
                logger.error("no connection is accepted", extra={"fault": fault})
        if fault is not None:
            self._say_goodbye()

    def _reason_to_close(self) -> str | None:
        fault = own_fault(datetime.now(UTC))
        issued = issued_by_this_node()
        if fault is None or self._since is None or issued != self._issued:
            # It issues tokens, so it can serve.
            self._since, self._issued = (uptime() if fault else None), issued
            return None
        seconds = min(uptime() - self._since - _BEGIN_SECONDS, _WINDOW_SECONDS)
        return fault if is_served_elsewhere(seconds) else None
