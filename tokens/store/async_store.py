"""What logins ask of the database, for many at once on an event loop: as `django_store`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from math import inf
from typing import Any, get_args

from django.db import OperationalError, connection

from taxpayers.async_sql import ANSWER_SECONDS, AsyncSession, NoConnection, NotAnswered
from taxpayers.facts.values import FactsQuery, Reading
from tokens.calls import (
    ApiSecretUse,
    Call,
    CallOfClient,
    FailedAuthentication,
    FailedLogin,
    RejectedRequest,
    TokenQuery,
    Write,
)
from tokens.store import sqlite
from tokens.store.django_store import LOCK_CLIENT
from tokens.store.lanes import Lane
from tokens.store.locked_clients import LaneOfClients
from tokens.store.postgresql import results_of_stored, statement_for
from tokens.store.sqlite_turns import Turns
from tokens.uptime import uptime

Observe = Callable[[float, datetime, float], None]

_MAX_LOCKED = 4  # clients for whose lock this process waits at the same time
# How long a batch waits for more: fewer statements, and a flood of refusals costs the others less.
# First logins, read together, are then also counted together.
_PAUSE_SECONDS = {FailedLogin: 0.001, RejectedRequest: 0.001, FactsQuery: 0.002}
_BUSY_SECONDS = 1.0  # how long a login waits for another process that writes to SQLite


class AsyncStore:
    """One for each process; closed when it ends."""

    def __init__(self, observe: Observe) -> None:
        """`observe` is told of the database's clock: see `DatabaseClock.observe`."""
        self._observe = observe
        self._of_locked = _ExecutorsOfLocked(observe)
        self._lanes = (
            self._postgresql_lanes() if connection.vendor == "postgresql" else _sqlite_lanes()
        )

    def perform(self, call: Call, ends_at: float) -> Awaitable[Any]:
        """The result of a call, until a time of the loop. Raises django.db.DatabaseError."""
        return self._lanes[type(call)].send(call, ends_at)

    @asynccontextmanager
    async def client_locked(
        self, query: FactsQuery, ends_at: float
    ) -> AsyncIterator[tuple[Reading, Callable[[Call], Awaitable[Any]]]]:
        """The facts of a client that does not change meanwhile, and how to perform the next call.

        SQLite has no such lock: there it is an ordinary read.
        """
        if connection.vendor != "postgresql":
            yield await self.perform(query, ends_at), lambda call: self.perform(call, ends_at)
            return
        send_by = ends_at - ANSWER_SECONDS
        async with self._of_locked.one(send_by) as executor:
            is_changed = False

            async def perform(call: Call) -> Any:
                nonlocal is_changed
                is_changed = True
                return (await executor.execute([call], send_by))[0]

            try:
                await executor.fetch("BEGIN", (), send_by)
                await executor.fetch(LOCK_CLIENT, (query.client_id,), send_by)
                yield (await executor.execute([query], send_by))[0], perform
                if is_changed:
                    await executor.fetch("COMMIT", (), send_by)
            finally:
                await executor.end_transaction()

    async def close(self) -> None:
        """Waits for what is under way."""
        for lane in set(self._lanes.values()):
            await lane.close()
        await self._of_locked.close()

    def _postgresql_lanes(self) -> dict[type, Lane]:
        # One for each kind: who fails, or is rejected, does not wait together with who logs in.
        lanes: dict[type, Lane] = {ApiSecretUse: Lane(_ClosingExecutor(self._observe))}
        for kind in {*get_args(Call)} - {ApiSecretUse, FailedAuthentication}:
            executor = _PostgresqlExecutor(self._observe)
            if kind in get_args(CallOfClient):
                lanes[kind] = LaneOfClients(executor, self._of_locked, kind.__name__)
            else:
                lanes[kind] = Lane(executor, kind.__name__, _PAUSE_SECONDS.get(kind, 0))
        return {**lanes, FailedAuthentication: lanes[FailedLogin]}


class _PostgresqlExecutor:
    """One statement for all calls, on its own connection."""

    waits = False

    def __init__(self, observe: Observe) -> None:
        self._session = AsyncSession()
        self._observe = observe

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        statement = statement_for(calls, waits=self.waits)
        before = uptime()
        rows = await self._session.fetch(statement.sql, statement.parameters, send_by)
        if rows:
            self._observe(before, rows[0][0], uptime())
        return statement.parse(rows)

    async def results_of_stored(self, calls: Sequence[Write]) -> dict[Write, Any]:
        statement = results_of_stored(calls)
        return statement.parse(await self._session.fetch(statement.sql, statement.parameters))

    async def close(self) -> None:
        await self._session.close()


class _WaitingExecutor(_PostgresqlExecutor):
    """It waits for the lock of a client, so all its calls must be of one."""

    waits = True

    async def fetch(self, sql: str, parameters: Sequence[Any], send_by: float) -> None:
        await self._session.fetch(sql, parameters, send_by)

    async def end_transaction(self) -> None:
        """Rolls back what was not committed."""
        if not self._session.is_idle:
            await self.close()


class _ExecutorsOfLocked:
    """A few connections for clients that another session has locked; each waits for one of them."""

    def __init__(self, observe: Observe) -> None:
        self._turns = asyncio.Semaphore(_MAX_LOCKED)
        self._free = [_WaitingExecutor(observe) for _ in range(_MAX_LOCKED)]

    @asynccontextmanager
    async def one(self, until: float) -> AsyncIterator[_WaitingExecutor]:
        """One that is free, by a time of the loop. Raises NoConnection."""
        try:
            async with asyncio.timeout_at(until):
                await self._turns.acquire()
        except TimeoutError as error:
            raise NoConnection("too many clients are locked by others") from error
        executor = self._free.pop()
        try:
            yield executor
        finally:
            self._free.append(executor)  # the first to be used again: few are opened
            self._turns.release()

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        async with self.one(send_by) as executor:
            return await executor.execute(calls, send_by)

    async def results_of_stored(self, calls: Sequence[Write]) -> dict[Write, Any]:
        async with self.one(inf) as executor:
            return await executor.results_of_stored(calls)

    async def close(self) -> None:
        for executor in self._free:
            await executor.close()


class _ClosingExecutor(_PostgresqlExecutor):
    """For what comes once a minute: its connection would be idle until the next time."""

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        try:
            return await super().execute(calls, send_by)
        finally:
            await self.close()


def _sqlite_lanes() -> dict[type, Lane]:
    # SQLite has one writer, so all that write go together; readers do not wait.
    reader = Lane(_SqliteExecutor(takes_turns=False), "reader")
    writer = Lane(_SqliteExecutor(takes_turns=True), "writer")
    kinds = get_args(Call)
    return {**dict.fromkeys(kinds, writer), **dict.fromkeys((FactsQuery, TokenQuery), reader)}


class _SqliteExecutor:
    """One transaction for all calls, in a thread with its own connection."""

    def __init__(self, *, takes_turns: bool) -> None:
        self._thread = ThreadPoolExecutor(1, "sqlite", initializer=_wait_briefly)
        self._turns = Turns() if takes_turns else nullcontext()

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        execution = asyncio.get_running_loop().run_in_executor(self._thread, self._perform, calls)
        try:
            return await asyncio.wait_for(execution, ANSWER_SECONDS)
        except (OperationalError, TimeoutError) as error:  # another process writes all the time
            raise NotAnswered(str(error) or "no answer in time") from error

    def _perform(self, calls: Sequence[Call]) -> list[Any]:
        with self._turns:
            return sqlite.perform(calls)

    async def results_of_stored(self, calls: Sequence[Write]) -> dict[Write, Any]:
        return {}  # SQLite never leaves open whether something was stored

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, _close_connection)
        self._thread.shutdown()


def _wait_briefly() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")


def _close_connection() -> None:
    connection.close()  # looked up here: that of this thread
