"""What waits for a second person, and who may confirm and decline it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "0f618696806e"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0009_certificates"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.AlterModelOptions(
            name="staffaccount",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("create_account", "Can create staff accounts"),
                    ("rename_account", "Can rename staff accounts"),
                    ("change_role", "Can change the role of staff accounts"),
                    ("set_first_password", "Can set a new first password for staff accounts"),
                    ("reset_second_factor", "Can reset the second step of staff accounts"),
                    ("activate_account", "Can activate staff accounts"),
                    ("deactivate_account", "Can deactivate staff accounts"),
                    ("confirm_account", "Can confirm what another one asked for a staff account"),
                    ("decline_account", "Can decline what was asked for a staff account"),
                ],
                "verbose_name": "staff account",
                "verbose_name_plural": "staff accounts",
            },
        ),
        migrations.CreateModel(
            name="WaitingChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.CharField(max_length=64)),
                ("role", models.CharField(blank=True, max_length=150)),
                ("asked_by", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=500)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="waiting_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "waiting_changes",
                "ordering": ["pk"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "action"), name="one_waiting_change_of_a_kind"
                    )
                ],
            },
        ),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
