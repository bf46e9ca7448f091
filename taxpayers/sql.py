"""Plain SQL for the hot path, on the connection that Django keeps (house: fast where it matters).

On PostgreSQL a statement is prepared on its first use and answers in binary, which costs half of
what the same statement costs through Django's cursor. Everywhere else, and while somebody counts
queries, Django's cursor is used. (Behind a pooler a connection has no `prepare_threshold`, and then
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
    """The rows of a statement that has some, with `%s` or `%(name)s` for its parameters.

    Raises django.db.DatabaseError.
    """
    kept = connections[using]  # the proxy `connection` looks it up at each access
    if kept.vendor != "postgresql" or kept.queries_logged:
        return _through_django(sql, parameters, using)
    kept.ensure_connection()
    with kept.wrap_database_errors:
        cursor = _cursors.of(using, kept.connection)
        cursor.execute(sql, parameters, prepare=True, binary=True)
        rows: list[Row] = cursor.fetchall()
        return rows


def fetch_with_reconnect(sql: str, parameters: Sequence[Any]) -> list[Row]:
    """As `fetch`, and once more on a new connection if the kept one turns out to be dead.

    Only for a statement that changes nothing, and the first one of a request: so a restart of the
    database costs no login, without a question before each.
    """
    is_kept = connection.connection is not None and not connection.in_atomic_block
    try:
        return fetch(sql, parameters)
    except OperationalError:
        if not is_kept or connection.is_usable():
            raise
        connection.close()
        return fetch(sql, parameters)


class _Cursors(threading.local):
    """The cursor of each connection of this thread: a new one costs a quarter of a statement."""

    def __init__(self) -> None:
        self._kept: dict[str, psycopg.Cursor[Row]] = {}

    def of(self, using: str, connection: psycopg.Connection[Row]) -> psycopg.Cursor[Row]:
        cursor = self._kept.get(using)
        if cursor is None or cursor.connection is not connection:
            cursor = self._kept[using] = psycopg.Cursor(connection)
        return cursor


_cursors = _Cursors()


def _through_django(sql: str, parameters: Parameters, using: str) -> list[Row]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows
