"""Staff accounts as separate records, first passwords, and the role that manages accounts."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "8bc3e564dade"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("staff", "0002_saved_views"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="StaffAccount",
            fields=[],
            options={
                "verbose_name": "staff account",
                "verbose_name_plural": "staff accounts",
                "permissions": [
                    ("create_account", "Can create staff accounts"),
                    ("rename_account", "Can rename staff accounts"),
                    ("change_role", "Can change the role of staff accounts"),
                    ("set_first_password", "Can set a new first password for staff accounts"),
                    ("reset_second_factor", "Can reset the second step of staff accounts"),
                    ("activate_account", "Can activate staff accounts"),
                    ("deactivate_account", "Can deactivate staff accounts"),
                ],
                "proxy": True,
                "default_permissions": ("view",),
                "indexes": [],
                "constraints": [],
            },
            bases=("auth.user",),
        ),
        migrations.CreateModel(
            name="FirstPassword",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="first_password",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"db_table": "first_passwords", "default_permissions": ()},
        ),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
