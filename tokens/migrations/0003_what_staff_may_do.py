"""Permissions are named after deeds; nobody can add, change or delete rows (taxpayers/roles.py)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0002_login_events_by_month"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="failurebucket",
            options={"default_permissions": ()},
        ),
        migrations.AlterModelOptions(
            name="loginallowance",
            options={"default_permissions": ()},
        ),
        migrations.AlterModelOptions(
            name="loginevent",
            options={
                "default_permissions": ("view",),
                "ordering": ["-id"],
                "permissions": [("export_logins", "Can export logins to a file")],
                "verbose_name": "login",
                "verbose_name_plural": "logins",
            },
        ),
        migrations.AlterModelOptions(
            name="signingkey",
            options={
                "default_permissions": ("view",),
                "ordering": ["-generation"],
                "permissions": [("rotate_signing_key", "Can rotate the signing key")],
                "verbose_name": "signing key",
                "verbose_name_plural": "signing keys",
            },
        ),
    ]
