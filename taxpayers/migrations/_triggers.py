"""Drops and creates the triggers of epochs and of status lists, for a migration of their tables.

SQLite loses the triggers of a table that Django makes anew, and they name columns: so a migration
drops them before its changes and creates them after these, with the columns that are there by then.
"""

from collections.abc import Iterable

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from taxpayers.facts import status_triggers
from taxpayers.facts.epochs import triggers as epoch_triggers
from taxpayers.facts.epochs.row import Columns

Editor = BaseDatabaseSchemaEditor


def create_epoch_triggers(schema_editor: Editor, columns: Columns) -> None:
    """`columns`: those of DECIDING_COLUMNS that the tables have by now."""
    vendor, schema = schema_editor.connection.vendor, current_schema(schema_editor)
    execute(schema_editor, epoch_triggers.create_statements(vendor, schema, columns))


def drop_epoch_triggers(schema_editor: Editor) -> None:
    execute(schema_editor, epoch_triggers.drop_statements(schema_editor.connection.vendor))


def create_status_triggers(schema_editor: Editor, *, has_binding: bool = True) -> None:
    """`has_binding`: system users have the column `token_binding` by now."""
    vendor, schema = schema_editor.connection.vendor, current_schema(schema_editor)
    statements = status_triggers.create_statements(vendor, schema, has_binding=has_binding)
    execute(schema_editor, statements)


def drop_status_triggers(schema_editor: Editor) -> None:
    execute(schema_editor, status_triggers.drop_statements(schema_editor.connection.vendor))


def current_schema(schema_editor: Editor) -> str:
    """Where the tables are, quoted, on PostgreSQL; empty on SQLite."""
    if schema_editor.connection.vendor != "postgresql":
        return ""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        (schema,) = cursor.fetchone()
    return str(schema)


def execute(schema_editor: Editor, statements: Iterable[str]) -> None:
    for statement in statements:
        schema_editor.execute(statement, params=None)
