"""The version of a row in `status_indexes`, which a login confirms with the client's epoch.

Rows that exist get 0, without being written anew on PostgreSQL. A client that is deleted ends its
indexes at once: so the triggers are created anew. (SQLite would lose them, as it copies the table.)
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import taxpayers.models.usage
from taxpayers.migrations._triggers import create_status_triggers, drop_status_triggers


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_status_triggers(schema_editor)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_status_triggers(schema_editor, has_binding=False)


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
