"""What the tokens of a system user must be bound to.

The triggers of epochs and of status lists learn of the column; on SQLite Django also makes the
table anew, without triggers.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.facts import status_triggers
from taxpayers.facts.epochs import triggers as epoch_triggers
from taxpayers.facts.epochs.row import Columns

BEFORE: Columns = {
    "system_users": (
        *("id", "client_id", "taxpayer_id", "scopes", "logins_per_minute"),
        *("expires_at", "blocked_at", "token_endpoint_auth_method"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}
AFTER: Columns = {**BEFORE, "system_users": (*BEFORE["system_users"], "token_binding")}


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    vendor = schema_editor.connection.vendor
    for statement in status_triggers.drop_statements(vendor):
        schema_editor.execute(statement, params=None)
    for statement in epoch_triggers.drop_statements(vendor):
        schema_editor.execute(statement, params=None)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _create(schema_editor, AFTER, has_binding=True)


def create_former_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _create(schema_editor, BEFORE, has_binding=False)


def _create(
    schema_editor: BaseDatabaseSchemaEditor, columns: Columns, *, has_binding: bool
) -> None:
    vendor, schema = schema_editor.connection.vendor, ""
    if vendor == "postgresql":
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT quote_ident(current_schema())")
            (schema,) = cursor.fetchone()
    for statement in epoch_triggers.trigger_statements(vendor, schema, columns):
        schema_editor.execute(statement, params=None)
    for statement in status_triggers.create_statements(vendor, schema, has_binding=has_binding):
        schema_editor.execute(statement, params=None)


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
                    ("", "Nothing: whoever has a token can use it"),
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
