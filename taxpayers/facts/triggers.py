"""The triggers of epochs and of status lists in a database: always those of this version.

They are no migration. `migrate` puts in place what is missing or of another version, and a system
check names it.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from taxpayers.facts import status_triggers
from taxpayers.facts.epochs import postgresql, sqlite
from taxpayers.facts.epochs.row import add_rows, trigger_name

# Of this name are only ours, of this or an earlier version; on PostgreSQL also their functions.
_OURS = ("renew_epochs", "then_", "lock_taxpayers", "lock_intermediaries", "end_status_indexes")
_EDITION_OF = "renew_epochs(bigint[])"  # the function whose comment is the edition


def fault(connection: BaseDatabaseWrapper) -> str:
    """What is wrong with the triggers of a database that has their tables; empty: nothing."""
    wanted = names(connection.vendor)
    if not set(wanted.values()) <= set(connection.introspection.table_names()):
        return ""
    present = _present(connection)
    if missing := sorted(wanted.keys() - present.keys()):
        return f"These triggers are missing: {', '.join(missing)}."
    if present.keys() != wanted.keys() or _edition(connection) != _edition_of_this_version(
        connection
    ):
        return "The triggers are those of another version."
    return ""


def install(connection: BaseDatabaseWrapper) -> None:
    """Puts the triggers in place, if any is missing or of another version; in one transaction.

    Where one was missing, a change may have gone unnoticed: then every client gets a new epoch.
    """
    found = fault(connection)
    if not found:
        return
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        remove(connection)
        for statement in _statements(connection):
            cursor.execute(statement)
        if "missing" in found:
            cursor.execute(add_rows(connection.vendor))
        if connection.vendor == "postgresql":
            edition = _edition_of_this_version(connection)
            cursor.execute(f"COMMENT ON FUNCTION {_EDITION_OF} IS '{edition}'")


def remove(connection: BaseDatabaseWrapper) -> None:
    """Drops the triggers, whatever their version: SQLite cannot make a table anew beside them."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name in _present(connection):
                cursor.execute(f"DROP TRIGGER {name}")
            return
        cursor.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE proname::text ^@ ANY(%s)"
            " AND pronamespace = current_schema()::regnamespace",
            [list(_OURS)],
        )
        for (function,) in cursor.fetchall():
            cursor.execute(f"DROP FUNCTION IF EXISTS {function} CASCADE")


def names(vendor: str) -> dict[str, str]:
    """The name of each trigger, and its table."""
    triggers = sqlite.TRIGGERS if vendor == "sqlite" else postgresql.TRIGGERS
    of_epochs = {trigger_name(table, event): table for table, event in triggers}
    return of_epochs | status_triggers.trigger_names(vendor)


def _present(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """The triggers of ours that are there and enabled, with their text on SQLite."""
    query = (
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname, '' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE NOT tgisinternal AND tgenabled = 'O'"
        " AND relnamespace = current_schema()::regnamespace"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {name: text for name, text in cursor.fetchall() if name.startswith(_OURS)}


def _statements(connection: BaseDatabaseWrapper) -> Iterator[str]:
    if connection.vendor == "sqlite":
        yield from sqlite.create_statements()
        yield from status_triggers.create_statements("sqlite")
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        (schema,) = cursor.fetchone()
    yield from postgresql.create_statements(schema)
    yield from status_triggers.create_statements("postgresql", schema)


def _edition(connection: BaseDatabaseWrapper) -> str:
    if connection.vendor == "sqlite":
        return _hash(_present(connection).values())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT obj_description(to_regprocedure('{_EDITION_OF}'))")
        return cursor.fetchone()[0] or ""


def _edition_of_this_version(connection: BaseDatabaseWrapper) -> str:
    return _hash(_statements(connection))


def _hash(statements: Iterable[str]) -> str:
    texts = sorted(statements)
    return sha256("\n".join(texts).encode()).hexdigest()
