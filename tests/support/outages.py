"""What breaks, as code meets it: the connection of a real database fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.db import OperationalError, connection

_POSTGRESQL = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table}
    FOR EACH ROW EXECUTE FUNCTION fail()"""
_SQLITE = """
CREATE TRIGGER fail_{event} BEFORE {event} ON {table}
BEGIN SELECT RAISE(ABORT, 'disk full'); END"""


@contextmanager
def database_out_of_reach() -> Iterator[None]:
    """Every query of this thread fails as it does when the server is gone."""

    def fail(*_arguments: Any) -> Any:
        raise OperationalError("server at 10.1.2.3 closed the connection unexpectedly")

    # Plain SQL goes through Django's cursor, and so through the wrapper, while queries are logged.
    with patch.object(connection, "force_debug_cursor", True), connection.execute_wrapper(fail):
        yield


@contextmanager
def writing_fails(table: str) -> Iterator[None]:
    """No row of this table can be added or changed: the server says that its disk is full."""
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_postgresql:
            cursor.execute(_POSTGRESQL.format(table=table))
        else:
            for event in ("INSERT", "UPDATE"):
                cursor.execute(_SQLITE.format(table=table, event=event))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            if is_postgresql:
                cursor.execute("DROP FUNCTION fail CASCADE")
            else:
                cursor.execute("DROP TRIGGER fail_INSERT")
                cursor.execute("DROP TRIGGER fail_UPDATE")
