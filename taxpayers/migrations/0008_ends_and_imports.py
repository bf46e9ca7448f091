"""What ends soon is found by an index; permissions of staff to extend and to import."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0007_change_task_id")]
    operations = [
        migrations.AddIndex(
            model_name="intermediary",
            index=models.Index(
                condition=models.Q(("active_until__isnull", False)),
                fields=["active_until"],
                name="intermediary_by_end",
            ),
        ),
        migrations.AlterModelOptions(
            name="grantedpermission",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("grant_permission", "Can enter permissions that taxpayers grant"),
                    ("extend_permission", "Can change when permissions end"),
                    ("revoke_permission", "Can revoke permissions"),
                ],
                "verbose_name": "granted permission",
                "verbose_name_plural": "granted permissions",
            },
        ),
        migrations.AlterModelOptions(
            name="systemuser",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("register_system_user", "Can register system users without a secret"),
                    ("issue_credentials", "Can create system users and issue their credentials"),
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
    ]
