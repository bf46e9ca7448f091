"""What a login changes gets a row of its own, beside the system user and its secrets."""

from itertools import groupby, islice

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

_BATCH = 5_000


def keep_last_uses(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    secrets = apps.get_model("taxpayers", "ClientSecret").objects
    usage = apps.get_model("taxpayers", "Usage")
    used = secrets.exclude(last_used_at=None).order_by("system_user_id", "last_used_at").iterator()
    rows = (
        usage(
            system_user_id=client,
            secrets_used={str(one.pk): one.last_used_at.isoformat() for one in its_secrets},
            minute_began_at=its_secrets[-1].last_used_at,
            used=1,
        )
        for client, group in groupby(used, key=lambda secret: secret.system_user_id)
        for its_secrets in [list(group)]
    )
    while batch := list(islice(rows, _BATCH)):
        usage.objects.bulk_create(batch)


def leave_room(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    # A row that changes at each login finds place for its next version in its own page: then no
    # index is written.
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE client_usage SET (fillfactor = 80)")


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0006_what_ended")]
    operations = [
        migrations.CreateModel(
            name="Usage",
            fields=[
                (
                    "system_user",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="usage",
                        serialize=False,
                        to="taxpayers.systemuser",
                    ),
                ),
                ("minute_began_at", models.DateTimeField()),
                ("used", models.PositiveIntegerField()),
                ("secrets_used", models.JSONField(default=dict)),
            ],
            options={"db_table": "client_usage", "default_permissions": ()},
        ),
        migrations.RunPython(leave_room, migrations.RunPython.noop),
        migrations.RunPython(keep_last_uses, migrations.RunPython.noop),
        migrations.RemoveField(model_name="clientsecret", name="last_used_at"),
    ]
