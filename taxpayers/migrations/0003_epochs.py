"""The epoch of each client, its row from registration on, and the triggers that renew it.

A later change of the triggers, and on SQLite of a table that has one, needs a migration that drops
them before and creates them after it: Django makes such a table anew there, without its triggers.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import taxpayers.models.usage
from taxpayers.facts.epochs.row import add_rows
from taxpayers.migrations._triggers import create_epoch_triggers, drop_epoch_triggers

# Those of DECIDING_COLUMNS that the tables have by now.
COLUMNS = {
    "system_users": (
        *("id", "client_id", "taxpayer_id", "scopes", "logins_per_minute"),
        *("expires_at", "blocked_at"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, COLUMNS)
    schema_editor.execute(add_rows(schema_editor.connection.vendor), params=None)


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_epoch_triggers(schema_editor)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0002_data_and_postgresql")]
    operations = [
        migrations.AddField(
            model_name="ratelimitcounter",
            name="epoch",
            field=models.BigIntegerField(
                db_default=taxpayers.models.usage.RandomEpoch(), editable=False
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
