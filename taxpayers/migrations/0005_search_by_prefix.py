"""What staff search by its beginning is found by an index: TIN, names, client ID, history."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# A plain index serves LIKE only in the C collation, so each has the operators for patterns. A
# model cannot say so without django.contrib.postgres; SQLite, for a demo's few rows, needs none.
_INDEXES = {
    "taxpayer_by_tin_prefix": "taxpayers (tin varchar_pattern_ops)",
    "taxpayer_by_name_prefix": "taxpayers (upper(name) text_pattern_ops)",
    "system_user_by_name_prefix": "system_users (upper(name) text_pattern_ops)",
    "change_by_label_prefix": "changes (label varchar_pattern_ops)",
}


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for name, columns in _INDEXES.items():
            schema_editor.execute(f"CREATE INDEX {name} ON {columns}")


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for name in _INDEXES:
            schema_editor.execute(f"DROP INDEX {name}")


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0004_what_ends_soon_and_uploads")]
    operations = [migrations.RunPython(create, drop)]
