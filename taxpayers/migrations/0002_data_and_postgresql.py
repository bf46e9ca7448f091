"""What a model cannot describe: the first permission codes, and what PostgreSQL needs to be fast."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# Contract 4: the codes that the table starts with.
_CODES = {
    "documents:submit": "Submit documents in the taxpayer's name",
    "documents:view": "View the taxpayer's documents",
    "documents:cancel": "Cancel documents that the taxpayer issued",
    "documents:reject": "Reject documents that the taxpayer received",
}
# A plain index serves LIKE only in the C collation, so each has the operators for patterns. A
# model cannot say so without django.contrib.postgres; SQLite, for a demo's few rows, needs none.
_PREFIX_INDEXES = {
    "taxpayer_by_tin_prefix": "taxpayers (tin varchar_pattern_ops)",
    "taxpayer_by_name_prefix": "taxpayers (upper(name) text_pattern_ops)",
    "system_user_by_name_prefix": "system_users (upper(name) text_pattern_ops)",
    "change_by_label_prefix": "changes (label varchar_pattern_ops)",
}
# A row that changes at each login finds place for its next version in its own page: then no
# index is written.
_ROOM_FOR_UPDATES = "ALTER TABLE client_usage SET (fillfactor = 80)"


def create_permission_codes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    model = apps.get_model("taxpayers", "PermissionCode")
    for code, description in _CODES.items():
        model.objects.get_or_create(code=code, defaults={"description": description})


def tune_postgresql(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, columns in _PREFIX_INDEXES.items():
        schema_editor.execute(f"CREATE INDEX {name} ON {columns}")
    schema_editor.execute(_ROOM_FOR_UPDATES)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0001_initial")]
    operations = [
        migrations.RunPython(create_permission_codes, migrations.RunPython.noop),
        migrations.RunPython(tune_postgresql, migrations.RunPython.noop),
    ]
