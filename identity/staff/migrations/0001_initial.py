"""The tables of staff, and the cache table. Groups are no migration: `migrate` makes them from the table of roles."""

import django.db.models.deletion
from django.conf import settings
from django.core.management import call_command
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def create_cache_table(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The table of Django's cache, which counts failed sign-ins over all processes."""
    database = schema_editor.connection.alias
    call_command("createcachetable", settings.CACHE_TABLE, database=database, verbosity=0)


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StaffAccount",
            fields=[],
            options={
                "verbose_name": "staff account",
                "verbose_name_plural": "staff accounts",
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
            options={
                "db_table": "first_passwords",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="StaffSignIn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_index=True, verbose_name="time")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("signed in", "Signed in"),
                            ("sign-in failed", "Wrong name, password or code"),
                            ("locked out", "Locked out: too many attempts"),
                            ("first password expired", "First password expired"),
                            ("no staff account", "No staff account"),
                        ],
                        max_length=32,
                        verbose_name="result",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        blank=True, db_index=True, max_length=150, verbose_name="user name"
                    ),
                ),
                (
                    "address",
                    models.GenericIPAddressField(null=True, verbose_name="source address"),
                ),
                (
                    "program",
                    models.CharField(blank=True, max_length=200, verbose_name="program"),
                ),
            ],
            options={
                "verbose_name": "sign-in of staff",
                "verbose_name_plural": "sign-ins of staff",
                "db_table": "staff_sign_ins",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["address", "at"], name="staff_sign_in_by_address")
                ],
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
        migrations.RunPython(create_cache_table, migrations.RunPython.noop),
    ]
