"""Prepared statements of one text parameter, sent without a cursor (PostgreSQL only).

To make psycopg's cursor, its query and its descriptions takes a third of what a statement costs.
"""

from typing import Any

import psycopg
from psycopg import abc
from psycopg.adapt import Transformer
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from taxpayers.sql import Parameters, Row

_FAILED = ExecStatus.FATAL_ERROR


def is_one_text(parameters: Parameters) -> bool:
    """Whether a statement with these can be sent so."""
    return len(parameters) == 1 and isinstance(parameters, tuple) and type(parameters[0]) is str


class PreparedStatements:
    """Those of one connection, each prepared when it is first sent. One at a time."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._known: dict[str, tuple[bytes, abc.Transformer]] = {}

    async def fetch(self, sql: str, parameter: str) -> list[Row]:
        """The rows of a statement with one `%s`. Raises psycopg.Error."""
        if "\0" in parameter:  # libpq would send what is before it
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        name, rows = self._known.get(sql) or await self._prepare(sql)
        self._connection.pgconn.send_query_prepared(
            name, (parameter.encode(),), result_format=Format.BINARY
        )
        result = await self._result()
        # How its columns are read is found out once.
        rows.set_pgresult(result, set_loaders=rows.pgresult is None, format=Format.BINARY)
        return rows.load_rows(0, result.ntuples, tuple)

    async def _prepare(self, sql: str) -> tuple[bytes, abc.Transformer]:
        name = b"hot_%d" % len(self._known)
        numbered = sql.replace("%s", "$1").replace("%%", "%")
        self._connection.pgconn.send_prepare(name, numbered.encode())
        await self._result()
        self._known[sql] = name, Transformer(self._connection)
        return self._known[sql]

    async def _result(self) -> PGresult:
        """That of what was sent last; the connection breaks here if it breaks."""
        results = await self._connection.wait(execute(self._connection.pgconn))
        result: PGresult = results[-1]
        if result.status == _FAILED:
            raise psycopg.errors.error_from_result(result)
        return result
