"""Names are found by any part of them, by an index of trigrams (pg_trgm); and ROB numbers.

The extension is trusted: a role that may create objects in the database may create it, too.
"""

from django.core.management.base import CommandError
from django.db import DatabaseError, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.models.name_lookups import folded_sql

_NAMES = {"taxpayer_by_name_part": "taxpayers", "system_user_by_name_part": "system_users"}
# A plain index serves LIKE only in the C collation, so this one has the operators for patterns.
_ROB = "CREATE INDEX taxpayer_by_rob_prefix ON taxpayers (rob varchar_pattern_ops)"
# What begins with a text is found by the new indexes as well.
_REPLACED = {
    "taxpayer_by_name_prefix": "taxpayers (upper(name) text_pattern_ops)",
    "system_user_by_name_prefix": "system_users (upper(name) text_pattern_ops)",
}
_HOW_TO_FIX = (
    "Searching names needs PostgreSQL's extension pg_trgm, and this role may not create it, or it"
    " is not installed. Install the package with PostgreSQL's additional modules (for example"
    " postgresql-contrib), let an administrator execute CREATE EXTENSION pg_trgm; in this database,"
    " and migrate again."
)


def index_parts_of_names(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        is_there = cursor.fetchone() is not None
    if not is_there:
        try:
            schema_editor.execute("CREATE EXTENSION pg_trgm")
        except DatabaseError as error:
            raise CommandError(f"{_HOW_TO_FIX} PostgreSQL says: {error}") from None
    for name, table in _NAMES.items():
        schema_editor.execute(
            f"CREATE INDEX {name} ON {table} USING gin ({folded_sql('name')} gin_trgm_ops)",
            params=None,
        )
    schema_editor.execute(_ROB)
    for name in _REPLACED:
        schema_editor.execute(f"DROP INDEX {name}")


def index_beginnings_of_names(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, columns in _REPLACED.items():
        schema_editor.execute(f"CREATE INDEX {name} ON {columns}")
    for name in (*_NAMES, "taxpayer_by_rob_prefix"):
        schema_editor.execute(f"DROP INDEX {name}")


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0005_taxpayer_not_active")]
    operations = [migrations.RunPython(index_parts_of_names, index_beginnings_of_names)]
