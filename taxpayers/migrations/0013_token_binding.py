"""What the tokens of a system user must be bound to.

The triggers of epochs and of status lists learn of the column; on SQLite Django also makes the
table anew, without triggers.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.facts.epochs.row import Columns
from taxpayers.migrations._triggers import (
    create_epoch_triggers,
    create_status_triggers,
    drop_epoch_triggers,
    drop_status_triggers,
)

BEFORE: Columns = {
    "system_users": (
        *("id", "client_id", "taxpayer_id", "scopes", "logins_per_minute"),
        *("expires_at", "blocked_at", "token_endpoint_auth_method"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}
AFTER: Columns = {**BEFORE, "system_users": (*BEFORE["system_users"], "token_binding")}


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_status_triggers(schema_editor)
    drop_epoch_triggers(schema_editor)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, AFTER)
    create_status_triggers(schema_editor)


def create_former_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, BEFORE)
    create_status_triggers(schema_editor, has_binding=False)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0012_status_index_versions")]
    operations = [
        migrations.RunPython(drop_triggers, create_former_triggers),
        migrations.AddField(
            model_name="systemuser",
            name="token_binding",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Nothing: anybody who has a token can use it"),
                    ("dpop", "A key of the client (DPoP)"),
                    ("tls", "The client's TLS certificate"),
                ],
                db_default="",
                default="",
                editable=False,
                max_length=8,
                verbose_name="tokens bound to",
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
