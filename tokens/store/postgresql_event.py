"""The event of a login in the statements of PostgreSQL: its columns, its moment, its parameter."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taxpayers.sql import Row, Statement
from tokens.calls import Event

# How far the moment of a decision may be from the moment at which it is stored. More means that the
# node's idea of the time is wrong, or that no caller waits for the answer any more.
MAX_AGE_SECONDS = 2

_TYPES = {
    "id": "uuid",
    "at": "timestamptz",
    "since": "timestamptz",
    "system_user_id": "bigint",
    "secret_id": "bigint",
    "source_address": "inet",
}
NOW = "statement_timestamp()"
COLUMNS = ", ".join(Event._fields)
EVENT = {column: _TYPES.get(column, "varchar") for column in Event._fields}
IS_RECENT = f"""abs(extract(epoch FROM statement_timestamp() - at)) <= {MAX_AGE_SECONDS}"""

# An event that comes too late has no moment, and so the statement fails: its login has had a 503.
RECENT_EVENT = ", ".join(
    f"CASE WHEN {IS_RECENT} THEN at END" if column == "at" else column for column in Event._fields
)


def rows_sent(columns: Mapping[str, str]) -> str:
    """SQL of the rows in the one parameter: arrays, as names of fields would take twice as long."""
    fields = enumerate(columns.items())
    values = ", ".join(f"(one ->> {place})::{kind} AS {name}" for place, (name, kind) in fields)
    return f"(SELECT {values} FROM jsonb_array_elements(%s::jsonb) AS one OFFSET 0)"


def statement(sql: str, sent: object, parse: Callable[[list[Row]], Any]) -> Statement[Any]:
    """The statement with all that is sent in its one parameter, as JSON."""
    return Statement(sql, (msgspec.json.encode(sent).decode(),), parse)
