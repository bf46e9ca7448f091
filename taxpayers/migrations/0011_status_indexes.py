"""The indexes of status lists, and the triggers by which changes reach them.

A later change of a table that has one of these triggers drops them before and creates them after
it, as with those of epochs (migration 0003).
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.migrations._triggers import create_status_triggers, drop_status_triggers


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE SEQUENCE status_index_numbers MINVALUE 0 START 0", params=None
        )
    create_status_triggers(schema_editor, has_binding=False)


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_status_triggers(schema_editor)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP SEQUENCE status_index_numbers", params=None)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0010_last_secret_ends_at")]
    operations = [
        migrations.CreateModel(
            name="StatusIndex",
            fields=[
                ("index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("system_user_id", models.BigIntegerField()),
                ("secret_id", models.BigIntegerField()),
                ("tin", models.CharField(max_length=64)),
                ("rob", models.CharField(blank=True, max_length=64)),
                ("actor", models.CharField(blank=True, max_length=129)),
                ("scopes", models.JSONField(default=dict)),
                ("permissions", models.JSONField(default=dict)),
                ("check_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "status_indexes",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("system_user_id", "secret_id", "tin", "rob", "actor"),
                        name="status_index_once",
                    )
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="status_index_by_check",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StatusChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("system_user_id", models.BigIntegerField(null=True)),
                ("ended_index", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "status_changes", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="EndedStatusIndex",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("index", models.BigIntegerField(unique=True)),
                ("ended_at", models.DateTimeField()),
            ],
            options={"db_table": "ended_status_indexes", "default_permissions": ()},
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
