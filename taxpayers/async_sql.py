"""Plain SQL on an event loop, with a deadline for everything (PostgreSQL only).

A server that hangs neither answers nor closes its connections. So a statement that is not answered
in time has its connection shut down from this side, and the server gives it up by itself: earlier
if it can, and at the latest when it runs again.
"""

import asyncio
from collections.abc import Mapping
from math import inf
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError, connection
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName

from taxpayers.prepared_statements import PreparedStatements, is_one_text
from taxpayers.shut_down import shut_down
from taxpayers.sql import Parameters, Row

CONNECT_SECONDS = 1.0
# The server ends a statement first, so that nothing is stored that the client gets a 503 for.
STATEMENT_SECONDS = 1.0
ANSWER_SECONDS = STATEMENT_SECONDS + 0.1
LOCK_SECONDS = 0.8
PLAN_SECONDS = 5.0

_TIME_ZONE = "SET TimeZone TO 'UTC'"
_OWN_SESSION = (
    # PostgreSQL would plan a statement for each batch anew, at the price of executing it. A plan
    # that stays must not be one for tables as small as they were, so it looks up each key: else it
    # reads the whole table for each batch, however it has grown meanwhile.
    "; SET plan_cache_mode TO force_generic_plan; SET enable_material TO off"
    "; SET enable_seqscan TO off; SET enable_hashjoin TO off; SET enable_mergejoin TO off"
    f"; SET statement_timeout TO {int(STATEMENT_SECONDS * 1000)}"
    f"; SET lock_timeout TO {int(LOCK_SECONDS * 1000)}"
    "; SET idle_in_transaction_session_timeout TO 3000"
    "; SET client_connection_check_interval TO 500"
)


class NoConnection(OperationalError):
    """There is no connection, so nothing was sent."""


class SentTooLate(NoConnection):
    """There is one, but the request has waited too long: nothing was sent."""


class ConnectionLost(OperationalError):
    """The connection broke while a statement was under way: it may have been executed, or not."""


class NotAnswered(ConnectionLost):
    """The deadline passed while a statement was under way."""


class AsyncSession:
    """One connection, opened when it is needed and again when it broke; one statement at a time."""

    def __init__(self) -> None:
        self._connection: psycopg.AsyncConnection[Row] | None = None
        self._cursor: psycopg.AsyncCursor[Row] | None = None
        self._prepared: PreparedStatements | None = None
        self._prepares = False
        self._plans_again_at = 0.0
        self._is_late = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def fetch(self, sql: str, parameters: Parameters = (), send_by: float = inf) -> list[Row]:
        """The rows of a statement, for which there is `ANSWER_SECONDS` from when it is sent.

        It is not sent later than `send_by`, a time of the loop. Raises NoConnection,
        ConnectionLost, and django.db.DatabaseError for a statement that the server refused.
        """
        try:
            return await self._fetch(sql, parameters, send_by)
        except (FeatureNotSupported, InvalidSqlStatementName) as error:
            # "cached plan must not change result type": a column has another type than when the
            # statement was prepared; or something has dropped it. Nothing was executed, and a new
            # connection prepares it again.
            if self.is_in_transaction:
                raise DatabaseError(str(error)) from error
            await self.close()
        except psycopg.Error as error:
            raise DatabaseError(str(error)) from error
        try:
            return await self._fetch(sql, parameters, send_by)
        except psycopg.Error as error:
            raise DatabaseError(str(error)) from error

    @property
    def is_in_transaction(self) -> bool:
        status = self._connection.info.transaction_status if self._connection else None
        return status == psycopg.pq.TransactionStatus.INTRANS

    @property
    def is_idle(self) -> bool:
        """No transaction is open, not even one that failed; nor is one without a connection."""
        status = self._connection.info.transaction_status if self._connection else None
        return status in (None, psycopg.pq.TransactionStatus.IDLE)

    async def close(self) -> None:
        """Safe to repeat."""
        opened, self._connection, self._cursor = self._connection, None, None
        if opened is not None:
            await opened.close()

    async def _fetch(self, sql: str, parameters: Parameters, send_by: float) -> list[Row]:
        loop = asyncio.get_running_loop()
        cursor = self._cursor if self.is_open else None
        if cursor is None:
            cursor = await self._open()
        elif self._prepares and loop.time() > self._plans_again_at and not self.is_in_transaction:
            await self._plan_again(cursor)
        if loop.time() > send_by:
            raise SentTooLate("it is too late to send the statement")
        self._is_late = False
        timer = loop.call_later(ANSWER_SECONDS, self._give_up)
        try:
            if self._prepared is not None and is_one_text(parameters):
                return await self._prepared.fetch(sql, *parameters)
            await cursor.execute(sql, parameters, prepare=self._prepares, binary=True)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if self._connection is not None and self._connection.closed:
                lost = NotAnswered if self._is_late else ConnectionLost
                raise lost(str(error)) from error
            raise
        finally:
            timer.cancel()

    async def _plan_again(self, cursor: psycopg.AsyncCursor[Row]) -> None:
        """Plans are for the sizes that tables had when a statement was first executed."""
        loop = asyncio.get_running_loop()
        self._plans_again_at = loop.time() + PLAN_SECONDS
        timer = loop.call_later(ANSWER_SECONDS, self._give_up)
        try:
            await cursor.execute("DISCARD PLANS")
        except psycopg.Error as error:
            raise NoConnection(str(error)) from error
        finally:
            timer.cancel()

    async def _open(self) -> psycopg.AsyncCursor[Row]:
        await self.close()
        loop, parameters = asyncio.get_running_loop(), _connection_parameters()
        gives_up_at = loop.time() + CONNECT_SECONDS
        self._prepares = parameters["prepare_threshold"] is not None
        try:
            opened = await asyncio.wait_for(
                psycopg.AsyncConnection.connect(**parameters, autocommit=True), CONNECT_SECONDS
            )
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise NoConnection(str(error) or "no connection in time") from error
        self._connection = opened
        self._plans_again_at = loop.time() + PLAN_SECONDS
        self._cursor = psycopg.AsyncCursor(opened)
        self._prepared = PreparedStatements(opened) if self._prepares else None
        settings = _TIME_ZONE + (_OWN_SESSION if self._prepares else "")
        timer = loop.call_at(gives_up_at, self._give_up)
        try:
            await opened.execute(settings.encode())
        except psycopg.Error as error:
            await self.close()
            raise NoConnection(str(error)) from error
        finally:
            timer.cancel()
        return self._cursor

    def _give_up(self) -> None:
        # Not by cancelling the task: psycopg would then wait for the server to confirm it.
        self._is_late = True
        if self._connection is not None and not self._connection.closed:
            shut_down(self._connection)


def _connection_parameters() -> dict[str, Any]:
    """Those of Django's connection, without what belongs to its own cursors."""
    parameters: Mapping[str, Any] = connection.get_connection_params()
    ours = {"cursor_factory", "context", "server_side_binding", "connect_timeout"}
    return {name: value for name, value in parameters.items() if name not in ours}
