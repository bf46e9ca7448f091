"""The test database as the migrations leave it, and back to that after tests that commit."""

import sqlite3
from pathlib import Path
from typing import Protocol

from django.db import connection, connections

from tests.servers.postgres import Postgres


def present_url() -> str:
    """The present database of PostgreSQL, for psycopg."""
    settings = connection.settings_dict
    address = f"{settings['HOST']}:{settings['PORT']}"
    return f"postgresql://{settings['USER']}@{address}/{settings['NAME']}"


class MigratedDatabase(Protocol):
    """A copy of the test database, taken before the first test."""

    def restore(self) -> None:
        """Make the test database equal to the copy: tables, rows, sequences and partitions."""


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
    """The copy is a second database of the same server."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._name = str(connection.settings_dict["NAME"])
        self._copy = f"{self._name}_migrated"
        self._recreate(self._copy, self._name)

    def restore(self) -> None:
        self._recreate(self._name, self._copy)

    def _recreate(self, name: str, template: str) -> None:
        connections.close_all()  # a database with connections is no template
        self._server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def close(self) -> None:
        """It ends with the server."""
