"""Permissions are named after deeds; nobody can add, change or delete rows (taxpayers/roles.py)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("taxpayers", "0002_permission_codes"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="change",
            options={
                "default_permissions": ("view",),
                "ordering": ["-at", "-id"],
                "verbose_name": "change",
                "verbose_name_plural": "history",
            },
        ),
        migrations.AlterModelOptions(
            name="clientsecret",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("rotate_secret", "Can issue a further client secret"),
                    ("retire_secret", "Can let a client secret end earlier"),
                    ("revoke_secret", "Can revoke client secrets"),
                ],
                "verbose_name": "client secret",
                "verbose_name_plural": "client secrets",
            },
        ),
        migrations.AlterModelOptions(
            name="grantedpermission",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("grant_permission", "Can enter permissions that taxpayers grant"),
                    ("revoke_permission", "Can revoke permissions"),
                ],
                "verbose_name": "granted permission",
                "verbose_name_plural": "granted permissions",
            },
        ),
        migrations.AlterModelOptions(
            name="intermediary",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("register_intermediary", "Can register intermediaries"),
                    ("change_intermediary", "Can change intermediaries"),
                ],
                "verbose_name": "intermediary",
                "verbose_name_plural": "intermediaries",
            },
        ),
        migrations.AlterModelOptions(
            name="permissioncode",
            options={
                "default_permissions": ("view",),
                "permissions": [("set_permission_code", "Can add and describe permission codes")],
                "verbose_name": "permission code",
                "verbose_name_plural": "permission codes",
            },
        ),
        migrations.AlterModelOptions(
            name="systemuser",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("issue_credentials", "Can create system users and issue their credentials"),
                    ("change_system_user", "Can change the name, scopes and limit of system users"),
                    ("extend_system_user", "Can change when system users expire"),
                    ("block_system_user", "Can block system users"),
                    ("unblock_system_user", "Can unblock system users"),
                ],
                "verbose_name": "system user",
                "verbose_name_plural": "system users",
            },
        ),
        migrations.AlterModelOptions(
            name="taxpayer",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("register_taxpayer", "Can register taxpayers"),
                    ("rename_taxpayer", "Can rename taxpayers"),
                    ("activate_taxpayer", "Can activate taxpayers"),
                    ("deactivate_taxpayer", "Can deactivate taxpayers"),
                    ("import_registry", "Can import taxpayers from a file"),
                    ("export_registry", "Can export the registry to a file"),
                ],
                "verbose_name": "taxpayer",
                "verbose_name_plural": "taxpayers",
            },
        ),
    ]
