"""The triggers that renew epochs, for the engine of a database. Pure: a migration runs the SQL."""

from collections.abc import Iterator

from taxpayers.facts.epochs import postgresql, sqlite
from taxpayers.facts.epochs.row import add_rows, trigger_name


def create_statements(vendor: str, schema: str = "") -> Iterator[str]:
    """Creates the triggers, then the rows of clients; `schema`: of the tables, on PostgreSQL."""
    yield from (
        sqlite.create_statements() if vendor == "sqlite" else postgresql.create_statements(schema)
    )
    yield add_rows(vendor)


def drop_statements(vendor: str) -> Iterator[str]:
    """Drops the triggers, as before a migration that changes them or, on SQLite, their tables."""
    return sqlite.drop_statements() if vendor == "sqlite" else postgresql.drop_statements()


def trigger_names(vendor: str) -> dict[str, str]:
    """The name of each trigger, and its table."""
    triggers = sqlite.TRIGGERS if vendor == "sqlite" else postgresql.TRIGGERS
    return {trigger_name(table, event): table for table, event in triggers}
