"""System users that log in with a private key: their method, and their public keys."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.facts.epochs.row import Columns
from taxpayers.migrations._triggers import create_epoch_triggers, drop_epoch_triggers

BEFORE: Columns = {
    "system_users": (
        *("id", "client_id", "taxpayer_id", "scopes", "logins_per_minute"),
        *("expires_at", "blocked_at"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}
AFTER: Columns = {
    **BEFORE,
    "system_users": (*BEFORE["system_users"], "token_endpoint_auth_method"),
}


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    drop_epoch_triggers(schema_editor)


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, AFTER)


def create_former_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create_epoch_triggers(schema_editor, BEFORE)


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0008_ends_and_imports")]
    operations = [
        migrations.RunPython(drop_triggers, create_former_triggers),
        migrations.AddField(
            model_name="clientsecret",
            name="public_jwk",
            field=models.TextField(
                blank=True, db_default="", default="", editable=False, verbose_name="public key"
            ),
        ),
        migrations.AddField(
            model_name="systemuser",
            name="token_endpoint_auth_method",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Client secret"),
                    ("private_key_jwt", "Private key (private_key_jwt)"),
                ],
                db_default="",
                default="",
                editable=False,
                max_length=32,
                verbose_name="login method",
            ),
        ),
        migrations.AlterModelOptions(
            name="clientsecret",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("rotate_secret", "Can issue a further client secret"),
                    ("register_client_key", "Can register a key that a system user logs in with"),
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
