"""Protected APIs and their secrets; tokens that their clients have ended."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0004_logins_by_actor"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProtectedApi",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "client_id",
                    models.CharField(
                        editable=False, max_length=64, unique=True, verbose_name="client ID"
                    ),
                ),
                ("name", models.CharField(max_length=255, unique=True, verbose_name="name")),
                ("audience", models.CharField(max_length=255, verbose_name="audience")),
                (
                    "is_active",
                    models.BooleanField(db_default=True, default=True, verbose_name="active"),
                ),
                ("created_at", models.DateTimeField(editable=False, verbose_name="registered")),
            ],
            options={
                "verbose_name": "protected API",
                "verbose_name_plural": "protected APIs",
                "db_table": "protected_apis",
                "permissions": [
                    ("register_protected_api", "Can register protected APIs"),
                    ("activate_protected_api", "Can activate protected APIs"),
                    ("deactivate_protected_api", "Can deactivate protected APIs"),
                ],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RevokedToken",
            fields=[
                ("jti", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField()),
            ],
            options={
                "db_table": "revoked_tokens",
                "default_permissions": (),
                "indexes": [models.Index(fields=["expires_at"], name="revoked_token_by_end")],
            },
        ),
        migrations.CreateModel(
            name="ProtectedApiSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hashed", models.CharField(editable=False, max_length=80)),
                ("hint", models.CharField(editable=False, max_length=8)),
                ("created_at", models.DateTimeField(editable=False)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(editable=False, null=True)),
                (
                    "protected_api",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="tokens.protectedapi",
                    ),
                ),
            ],
            options={
                "db_table": "protected_api_secrets",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("protected_api", "hashed"), name="api_secret_stored_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("created_at__lt", models.F("expires_at"))),
                        name="api_secret_created_before_expiry",
                    ),
                ],
            },
        ),
    ]
