"""Calls that meet the row of their client while another session, such as of a node, has it locked.

They are sent again in a lane of this client, which waits for the lock: so they hold up no other
client. Each waits while it has no other lock, so no two wait for each other.

A statement that skips locked rows does not say why it did nothing: asking there would cost every
login. So all that nothing was done for are sent again; only a client that has changed, or that is
over its limit, pays for it.
"""

import asyncio
from typing import Any

from tokens.calls import Call, CallOfClient, TakenIndex
from tokens.store.lanes import Executor, Lane, Waiting


class LaneOfClients(Lane):
    """A lane of calls that lock the rows of their clients."""

    def __init__(self, executor: Executor, of_locked: Executor, name: str) -> None:
        """`of_locked` waits for the lock of a client, of several at the same time."""
        super().__init__(executor, name)
        self._of_locked = of_locked
        self._locked: dict[int, Lane] = {}

    async def close(self) -> None:
        """As its parent."""
        while drivers := [one.driver for one in (self, *self._locked.values()) if one.driver]:
            await asyncio.wait(drivers)
            if not self._locked:
                break
        await super().close()

    def _count(self) -> int:
        return sum((len(lane.waiting) for lane in self._locked.values()), len(self.waiting))

    def _deliver(self, waiting: Waiting, result: Any) -> None:
        if may_be_locked(result):
            self._wait_for_client(waiting)
        else:
            super()._deliver(waiting, result)

    def _drop_late(self) -> None:
        super()._drop_late()
        if not self._locked:
            return
        # Logins of a client stay in their order, and a locked one is not asked for again.
        for one in [one for one in self.waiting if _client_of(one.call) in self._locked]:
            self.waiting.remove(one)
            self._wait_for_client(one)

    def _wait_for_client(self, waiting: Waiting) -> None:
        client = _client_of(waiting.call)
        if client not in self._locked:
            lane = self._locked[client] = Lane(self._of_locked)
            lane.driver = asyncio.get_running_loop().create_task(self._drive_client(client, lane))
        self._locked[client].waiting.append(waiting)

    async def _drive_client(self, client: int, lane: Lane) -> None:
        try:
            await lane.drive()
        finally:
            del self._locked[client]


def may_be_locked(result: object) -> bool:
    """Whether nothing was done for a call, perhaps because its client is locked."""
    return result is None or (isinstance(result, TakenIndex) and result.status is None)


def _client_of(call: Call) -> int:
    assert isinstance(call, CallOfClient)  # noqa: S101 - no other kind is sent in these lanes
    return call.system_user_id
