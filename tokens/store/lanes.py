"""Many logins at once on an event loop: those that wait go together, in one statement, one commit.

What gathers while a statement is under way is sent next; only refusals, and facts that are to be
read, wait for a timer. Nothing waits without an end: a call that cannot be sent in time, or that
finds too many waiting, fails.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db import DatabaseError, OperationalError

from taxpayers.async_sql import ANSWER_SECONDS, ConnectionLost, NoConnection, NotAnswered
from taxpayers.facts.values import FactsQuery
from tokens.calls import (
    AssertionUse,
    Call,
    CountedLogin,
    FailedAuthentication,
    FailedLogin,
    ProofUse,
    RejectedRequest,
    TakeStatusIndex,
    TokenQuery,
    Write,
)
from tokens.metrics import waiting_calls

# A call has this long from its login's beginning to its result: so a login is never answered later.
CALL_SECONDS = 1.9
MAX_BATCH, MAX_WAITING = 64, 512
_TURNS = 4  # of the loop before a batch: what is ready by then is decided first, and goes with it
_RECONNECT_SECONDS = 0.05


class Overloaded(OperationalError):
    """Too many calls wait already."""


class TooLate(OperationalError):
    """There is not enough time left to send the call and hear of it."""


class Executor(Protocol):
    """Executes calls of one kind together: all of them, or none."""

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        """`send_by` and errors are those of `AsyncSession.fetch`."""

    async def results_of_stored(self, calls: Sequence[Write]) -> dict[Write, Any]:
        """The results of those of these calls that are stored."""

    async def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Waiting:
    call: Call
    must_be_sent_by: float
    done: asyncio.Future[Any]
    was_sent: bool = False


class Lane:
    """Calls of one kind, on one connection, a batch at a time."""

    def __init__(self, executor: Executor, name: str = "", pause_seconds: float = 0) -> None:
        """With a name the metrics show how many wait. A batch waits so long for more calls."""
        self._executor = executor
        self._pause_seconds = pause_seconds
        self._gauge = waiting_calls.labels(name) if name else None
        self._shown = 0
        self.waiting: deque[Waiting] = deque()
        self.driver: asyncio.Task[None] | None = None

    def send(self, call: Call, ends_at: float) -> Awaitable[Any]:
        """The result of the call, until a time of the loop. Raises django.db.DatabaseError."""
        loop = asyncio.get_running_loop()
        if self._count() >= MAX_WAITING:
            raise Overloaded("too many logins are waiting for the database")
        waiting = Waiting(call, ends_at - ANSWER_SECONDS, loop.create_future())
        self.waiting.append(waiting)
        if self.driver is None or self.driver.done():
            self.driver = loop.create_task(self.drive())
        return waiting.done

    async def close(self) -> None:
        """Waits for what is under way."""
        if self.driver is not None:
            await asyncio.wait([self.driver])
        await self._executor.close()

    def _count(self) -> int:
        return len(self.waiting)

    def _deliver(self, waiting: Waiting, result: Any) -> None:
        _succeed(waiting, result)

    async def drive(self) -> None:
        """Until nothing waits."""
        while self.waiting:
            if self._pause_seconds:
                await asyncio.sleep(self._pause_seconds)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self._drop_late()
            batch = take_batch(self.waiting)
            self._show_waiting()
            if batch:
                try:
                    await self._execute(batch)
                except Exception as error:  # noqa: BLE001 - no caller must wait for ever
                    _fail_all(batch, error)

    def _show_waiting(self) -> None:
        """Those that are left behind a batch: most often none, and nothing is written."""
        if self._gauge is not None and (waiting := self._count()) != self._shown:
            self._shown = waiting
            self._gauge.set(waiting)

    def _drop_late(self) -> None:
        now = asyncio.get_running_loop().time()
        late = [one for one in self.waiting if one.must_be_sent_by < now]
        for one in late:
            self.waiting.remove(one)
            _fail(one, TooLate("the database does not answer in time"))

    async def _execute(self, batch: list[Waiting]) -> None:
        try:
            batch = await self._not_stored(batch)
            results = await self._send(batch) if batch else []
        except NoConnection as error:
            await self._wait_for_connection(batch, error)
        except NotAnswered as error:
            _fail_all(batch, error)
        except ConnectionLost:
            # Whether it was stored is looked up before it is sent again: a login that took the last
            # place in its window must not be told that there is none. Each event has an id of its
            # own, so what is still under way there is not stored twice either.
            for waiting in batch:
                waiting.was_sent = True
            self.waiting.extendleft(reversed(batch))
        except Exception as error:  # noqa: BLE001 - also a row that cannot be read
            await self._refused(batch, error)
        else:
            for waiting, result in zip(batch, results, strict=True):
                self._deliver(waiting, result)

    async def _send(self, batch: list[Waiting]) -> list[Any]:
        send_by = min(one.must_be_sent_by for one in batch)
        return await self._executor.execute([one.call for one in batch], send_by)

    async def _not_stored(self, batch: list[Waiting]) -> list[Waiting]:
        """Those that are left; the others have their results since they were first sent."""
        # What has no event is sent again: a failed authentication may then count twice.
        writes = {one.call: one for one in batch if one.was_sent and isinstance(one.call, Write)}
        if not writes:
            return batch
        stored = await self._executor.results_of_stored(list(writes))
        for write, result in stored.items():
            _succeed(writes[write], result)
        return [one for one in batch if one.call not in stored]

    async def _wait_for_connection(self, batch: list[Waiting], error: Exception) -> None:
        again_at = asyncio.get_running_loop().time() + _RECONNECT_SECONDS
        _fail_all([one for one in batch if one.must_be_sent_by < again_at], error)
        if left := [one for one in batch if one.must_be_sent_by >= again_at]:
            await asyncio.sleep(_RECONNECT_SECONDS)
            self.waiting.extendleft(reversed(left))

    async def _refused(self, batch: list[Waiting], error: Exception) -> None:
        """Retry each call in its own statement, so that only the one at fault fails."""
        # What cannot be read was executed all the same: only reading is safe to repeat.
        reads = all(isinstance(one.call, FactsQuery | TokenQuery) for one in batch)
        if len(batch) > 1 and (reads or isinstance(error, DatabaseError)):
            for waiting in batch:
                await self._execute([waiting])
            return
        try:  # perhaps it was stored when it was first sent, and that is no error
            left = await self._not_stored(batch)
        except DatabaseError:
            left = batch
        _fail_all(left, error)


def take_batch(waiting: deque[Waiting]) -> list[Waiting]:
    """Takes the first of those that wait, in their order; two that touch one row never together."""
    batch: list[Waiting] = []
    left: list[Waiting] = []
    rows: set[Hashable] = set()
    while waiting and len(batch) < MAX_BATCH:
        one = waiting.popleft()
        own = rows_of(one.call)
        if rows.isdisjoint(own):
            rows.update(own)
            batch.append(one)
        else:
            left.append(one)
    waiting.extendleft(reversed(left))
    return batch


def rows_of(call: Call) -> tuple[Hashable, ...]:
    """The buckets, indexes and assertions that the call changes.

    Not the counter of a client: a statement counts several of its logins in their order.
    """
    if isinstance(call, CountedLogin):
        return tuple(use.id for use in (call.proof, call.assertion) if use is not None)
    if isinstance(call, FailedLogin | FailedAuthentication):
        return (call.pair_bucket, call.address_bucket)
    if isinstance(call, RejectedRequest):
        return (call.bucket,)
    if isinstance(call, TakeStatusIndex):
        return (call[:5],)
    return (call.id,) if isinstance(call, AssertionUse | ProofUse) else ()


def _succeed(waiting: Waiting, result: Any) -> None:
    if not waiting.done.done():
        waiting.done.set_result(result)


def _fail(waiting: Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)


def _fail_all(batch: list[Waiting], error: Exception) -> None:
    for waiting in batch:
        _fail(waiting, error)
