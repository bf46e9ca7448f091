"""Plain SQL for the hot path, on the connection that Django manages.

On PostgreSQL a statement is prepared on its first use and answers in binary, which costs half of
what the same statement costs through Django's cursor. Django's cursor is used for other databases,
and while queries are logged. (Behind a pooler a connection has no `prepare_threshold`, and then
psycopg prepares nothing.)
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]


def fetch(sql: str, parameters: Parameters, using: str = DEFAULT_DB_ALIAS) -> list[Row]:
    """The rows of a statement that returns rows, with `%s` or `%(name)s` for its parameters.

    Raises django.db.DatabaseError.
    """
    database = connections[using]  # the proxy `connection` looks it up at each access
    if database.vendor != "postgresql" or database.queries_logged:
        return _fetch_through_django(sql, parameters, using)
    database.ensure_connection()
    with database.wrap_database_errors:
        cursor = _cursors.cursor_of(using, database.connection)
        cursor.execute(sql, parameters, prepare=True, binary=True)
        rows: list[Row] = cursor.fetchall()
        return rows


def fetch_with_reconnect(sql: str, parameters: Sequence[Any]) -> list[Row]:
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


class _Cursors(threading.local):
    """One cursor for each connection of this thread: a new one costs a quarter of a statement."""

    def __init__(self) -> None:
        self._by_alias: dict[str, psycopg.Cursor[Row]] = {}

    def cursor_of(self, using: str, connection: psycopg.Connection[Row]) -> psycopg.Cursor[Row]:
        cursor = self._by_alias.get(using)
        if cursor is None or cursor.connection is not connection:
            cursor = self._by_alias[using] = psycopg.Cursor(connection)
        return cursor


_cursors = _Cursors()


def _fetch_through_django(sql: str, parameters: Parameters, using: str) -> list[Row]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows
