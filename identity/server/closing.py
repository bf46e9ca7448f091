"""A node that cannot serve while others do closes its door, so that no login is sent to it.

It refuses quickest, so the proxy would send it most of them. A fault that all nodes share closes
none: a node closes only while others issue tokens. Nothing that a client does is such a fault.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from identity.readiness import is_ready, is_served_elsewhere, own_fault
from identity.server.listener import Listener
from identity.server.readiness import Readiness
from tokens.metrics import issued_by_this_node
from tokens.uptime import uptime

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
