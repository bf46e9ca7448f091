"""The version of a row in `status_indexes`, which a login confirms with the client's epoch.

Rows that exist get 0, without being written anew on PostgreSQL. A client that is deleted ends its
indexes at once: so the triggers are created anew. (SQLite would lose them, as it copies the table.)
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import taxpayers.models.usage
from taxpayers.facts.status_triggers import create_statements, drop_statements


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in drop_statements(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    vendor, schema = schema_editor.connection.vendor, ""
    if vendor == "postgresql":
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT quote_ident(current_schema())")
            (schema,) = cursor.fetchone()
    for statement in create_statements(vendor, schema, has_binding=False):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0011_status_indexes")]
    operations = [
        migrations.RunPython(drop_triggers, create_triggers),
        migrations.AddField(
            "statusindex", "version", models.BigIntegerField(db_default=0, editable=False)
        ),
        migrations.AlterField(
            "statusindex",
            "version",
            models.BigIntegerField(db_default=taxpayers.models.usage.RandomEpoch(), editable=False),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
