"""What system users may do for others at most, and from where secrets and keys may be used."""

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
        *("expires_at", "blocked_at", "token_endpoint_auth_method", "token_binding"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}
AFTER: Columns = {
    **BEFORE,
    "system_users": (*BEFORE["system_users"], "allowed_permissions", "allowed_taxpayers"),
}


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_status_triggers(schema_editor)
    drop_epoch_triggers(schema_editor)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, AFTER)
    create_status_triggers(schema_editor)


def create_former_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, BEFORE)
    create_status_triggers(schema_editor)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0013_token_binding")]
    operations = [
        migrations.RunPython(drop_triggers, create_former_triggers),
        migrations.AddField(
            model_name="systemuser",
            name="allowed_permissions",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                verbose_name="allowed permissions",
            ),
        ),
        migrations.AddField(
            model_name="systemuser",
            name="allowed_taxpayers",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                verbose_name="allowed taxpayers",
            ),
        ),
        migrations.AddField(
            model_name="clientsecret",
            name="allowed_networks",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                verbose_name="allowed networks",
            ),
        ),
        migrations.AlterModelOptions(
            name="clientsecret",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("rotate_secret", "Can issue a further client secret"),
                    ("register_client_key", "Can register a key that a system user logs in with"),
                    ("change_secret", "Can change from where client secrets may be used"),
                    ("retire_secret", "Can let a client secret end earlier"),
                    ("revoke_secret", "Can revoke client secrets"),
                ],
                "verbose_name": "client secret",
                "verbose_name_plural": "client secrets",
            },
        ),
        migrations.AlterModelOptions(
            name="systemuser",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("register_system_user", "Can register system users without a secret"),
                    ("issue_credentials", "Can create system users and issue their credentials"),
                    ("change_login_method", "Can change how system users log in"),
                    (
                        "change_system_user",
                        "Can change the name, scopes and limit of system users",
                    ),
                    ("limit_system_user", "Can limit what system users may do for others"),
                    ("extend_system_user", "Can change when system users expire"),
                    ("block_system_user", "Can block system users"),
                    ("unblock_system_user", "Can unblock system users"),
                ],
                "verbose_name": "system user",
                "verbose_name_plural": "system users",
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
