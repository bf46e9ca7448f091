"""What ends soon is found by an index; a file to import waits to be confirmed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("taxpayers", "0003_what_staff_may_do"),
    ]

    operations = [
        migrations.CreateModel(
            name="UploadedFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("content", models.BinaryField()),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "uploaded_files",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="clientsecret",
            index=models.Index(
                condition=models.Q(("slot__isnull", False)),
                fields=["expires_at"],
                name="secret_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="grantedpermission",
            index=models.Index(
                condition=models.Q(("revoked_at__isnull", True), ("valid_until__isnull", False)),
                fields=["valid_until"],
                name="permission_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False)),
                fields=["expires_at"],
                name="system_user_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(
                condition=models.Q(("blocked_at__isnull", False)),
                fields=["-blocked_at"],
                name="system_user_blocked",
            ),
        ),
    ]
