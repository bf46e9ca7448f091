"""The test database as the migrations leave it, and back to that after tests that commit."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.servers.postgres import Postgres


def present_url() -> str:
    settings = connection.settings_dict
    address = f"{settings['HOST']}:{settings['PORT']}"
    return f"postgresql://{settings['USER']}@{address}/{settings['NAME']}"


@contextmanager
def another_session() -> Iterator[BaseDatabaseWrapper]:
    other = connection.copy()
    try:
        yield other
    finally:
        other.close()


class MigratedSqlite:
    """The copy is in memory."""

    def __init__(self) -> None:
        connection.ensure_connection()
        self._copy = sqlite3.connect(":memory:")
        connection.connection.backup(self._copy)

    def restore(self) -> None:
        connections.close_all()
        connection.ensure_connection()
        self._copy.backup(connection.connection)

    def write_to(self, path: Path) -> None:
        """A migrated database for a service: much quicker than to migrate another one."""
        target = sqlite3.connect(path)
        self._copy.backup(target)
        target.close()

    def close(self) -> None:
        self._copy.close()


class MigratedPostgres:
    """The copy is a second database of the same server; its few rows are in memory as well.

    To copy a database takes most of a second, so only a test that changed a table itself gets one.
    After all others the rows are enough.
    """

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._name = str(connection.settings_dict["NAME"])
        self._copy = f"{self._name}_migrated"
        self._recreate(self._copy, self._name)
        with psycopg.connect(server.url(self._name)) as session:
            self._rows = {table: _copy_out(session, table) for (table,) in session.execute(_TABLES)}
            self._sequences = session.execute(_SEQUENCES).fetchall()
            self._schema = session.execute(_SCHEMA).fetchall()

    def restore(self) -> None:
        connections.close_all()
        with psycopg.connect(self._server.url(self._name)) as session:
            session.execute(_END_OTHERS)  # they may hold locks
            is_same = session.execute(_SCHEMA).fetchall() == self._schema
            if is_same:
                self._restore_rows(session)
        if not is_same:
            self._recreate(self._name, self._copy)

    def _restore_rows(self, session: psycopg.Connection) -> None:
        session.execute("SET session_replication_role = replica")  # no trigger, no foreign key
        session.execute(b";".join(b"DELETE FROM %b" % table.encode() for table in self._rows))
        for table, rows in self._rows.items():
            if rows:
                with session.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
                    copy.write(rows)
        with session.cursor() as cursor:
            cursor.executemany("SELECT setval(%s, coalesce(%s, 1), %s)", self._sequences)

    def _recreate(self, name: str, template: str) -> None:
        connections.close_all()  # a database with connections is no template
        self._server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def close(self) -> None:
        """It ends with the server."""


_END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_TABLES = """
    SELECT oid::regclass::text FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_SEQUENCES = """
    SELECT format('%I.%I', schemaname, sequencename), last_value, last_value IS NOT NULL
    FROM pg_sequences
"""
# Every change of a table, of what belongs to it, or of what the planner knows of it, writes a row
# into one of these.
_CATALOGS = (
    *("pg_class", "pg_attribute", "pg_constraint", "pg_depend", "pg_index", "pg_inherits"),
    *("pg_proc", "pg_trigger", "pg_statistic", "pg_db_role_setting"),
)
_SCHEMA = " UNION ALL ".join(
    f"SELECT count(*), max(xmin::text::bigint) FROM {catalog}"  # noqa: S608 - constants
    for catalog in _CATALOGS
)


def _copy_out(session: psycopg.Connection, table: str) -> bytes:
    with session.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(copy)
