"""Plain SQL for the hot path, on the connection that Django manages.

On PostgreSQL a statement is prepared on its first use and answers in binary: half of what it costs
through Django's cursor. On SQLite Python's own cursor saves a quarter of a login. Django's is used
while queries are logged. (Behind a pooler psycopg prepares nothing.)

A connection that can serve no more is replaced, here and not at the end of a request.
"""

import select
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

Row = tuple[Any, ...]
Parameters = Sequence[Any]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Statement(Generic[Result]):
    """What to execute, and what its rows mean; the first column is the database's clock."""

    sql: str
    parameters: Parameters
    parse: Callable[[list[Row]], Result]


def fetch(sql: str, parameters: Parameters) -> list[Row]:
    """The rows of a statement that returns rows, with `%s` for its parameters.

    Raises django.db.DatabaseError. Then nothing was executed, or the connection broke while the
    statement was under way: that it was executed cannot be ruled out, and it is not sent again.
    """
    database = connections[DEFAULT_DB_ALIAS]  # the proxy `connection` looks it up at each access
    if database.queries_logged:
        return fetch_through_django(sql, parameters)
    if database.vendor != "postgresql":
        return _fetch_from_sqlite(database, sql, parameters)
    if database.in_atomic_block:  # its rollback makes psycopg prepare everything again
        return _fetch_prepared(database, sql, parameters)
    if _session.may_be_closed(database.connection) and not database.is_usable():
        database.close()
    try:
        return _fetch_prepared(database, sql, parameters)
    except NotSupportedError:
        # "cached plan must not change result type": nothing was executed. It is prepared again.
        database.close()
        return _fetch_prepared(database, sql, parameters)


def fetch_with_reconnect(sql: str, parameters: Parameters) -> list[Row]:
    """As `fetch`, and once more on a new connection if the open one turns out to be broken.

    Only for a statement that changes nothing and is the first one of a request. So no login fails
    because the database was restarted, and none has to test its connection first.
    """
    was_open = connection.connection is not None and not connection.in_atomic_block
    try:
        return fetch(sql, parameters)
    except OperationalError:
        if not was_open or connection.is_usable():
            raise
        connection.close()
        return fetch(sql, parameters)


class _Session(threading.local):
    """The cursor and the socket of this thread's connection: a new cursor costs time."""

    def __init__(self) -> None:
        self._cursor: psycopg.Cursor[Row] | None = None
        self._socket = select.poll()

    def cursor(self, connection: psycopg.Connection[Row]) -> psycopg.Cursor[Row]:
        if self._cursor is None or self._cursor.connection is not connection:
            self._cursor = psycopg.Cursor(connection)
            self._socket = select.poll()
            self._socket.register(connection, select.POLLIN)
        return self._cursor

    def may_be_closed(self, connection: psycopg.Connection[Row] | None) -> bool:
        """Whether the server closed the connection, or sent what was not asked for.

        A look before the statement is sent: only then is it certain that it was not executed.
        """
        if self._cursor is None or self._cursor.connection is not connection:
            return False  # nothing was sent on it yet
        # The number of a closed one may be another socket's by now.
        return connection.closed or bool(self._socket.poll(0))


_session = _Session()


def _fetch_prepared(database: BaseDatabaseWrapper, sql: str, parameters: Parameters) -> list[Row]:
    database.ensure_connection()
    with database.wrap_database_errors:
        cursor = _session.cursor(database.connection)
        cursor.execute(sql, parameters, prepare=True, binary=True)
        rows: list[Row] = cursor.fetchall()
        return rows


def _fetch_from_sqlite(
    database: BaseDatabaseWrapper, sql: str, parameters: Parameters
) -> list[Row]:
    database.ensure_connection()
    with database.wrap_database_errors:
        rows: list[Row] = database.connection.execute(_with_marks(sql), parameters).fetchall()
        return rows


@cache
def _with_marks(sql: str) -> str:
    return sql.replace("%s", "?").replace("%%", "%")


def fetch_through_django(sql: str, parameters: Parameters) -> list[Row]:
    """The rows of a statement, by Django's own cursor. Raises django.db.DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows
