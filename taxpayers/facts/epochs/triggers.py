"""The triggers that renew epochs, for the engine of a database. Pure: a migration runs the SQL."""

from collections.abc import Iterator

from taxpayers.facts.epochs import postgresql, sqlite
from taxpayers.facts.epochs.row import DECIDING_COLUMNS, Columns, trigger_name


def create_statements(
    vendor: str, schema: str = "", columns: Columns = DECIDING_COLUMNS
) -> Iterator[str]:
    """Creates the triggers; `schema`: of the tables, quoted, on PostgreSQL."""
    if vendor == "sqlite":
        yield from sqlite.create_statements(columns)
    else:
        yield from postgresql.create_statements(schema, columns)


def drop_statements(vendor: str) -> Iterator[str]:
    """Drops the triggers, as before a migration that changes them or, on SQLite, their tables."""
    return sqlite.drop_statements() if vendor == "sqlite" else postgresql.drop_statements()


def trigger_names(vendor: str) -> dict[str, str]:
    """The name of each trigger, and its table."""
    triggers = sqlite.TRIGGERS if vendor == "sqlite" else postgresql.TRIGGERS
    return {trigger_name(table, event): table for table, event in triggers}
