"""The triggers that renew epochs, for the engine of a database. Pure."""

from collections.abc import Iterator

from taxpayers.facts.epochs import postgresql, sqlite
from taxpayers.facts.epochs.row import trigger_name


def create_statements(vendor: str, schema: str = "") -> Iterator[str]:
    """Creates the triggers; `schema`: of the tables, quoted, on PostgreSQL."""
    if vendor == "sqlite":
        yield from sqlite.create_statements()
    else:
        yield from postgresql.create_statements(schema)


def trigger_names(vendor: str) -> dict[str, str]:
    """The name of each trigger, and its table."""
    triggers = sqlite.TRIGGERS if vendor == "sqlite" else postgresql.TRIGGERS
    return {trigger_name(table, event): table for table, event in triggers}
