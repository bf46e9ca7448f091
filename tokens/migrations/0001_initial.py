"""The protocol: its tables."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CountingMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("next_id", models.UUIDField()),
            ],
            options={
                "db_table": "login_counting_mark",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ThrottledCaller",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("cause", models.CharField(max_length=16)),
                ("client_id", models.CharField(blank=True, max_length=64)),
                ("source", models.CharField(blank=True, max_length=43)),
                ("at", models.DateTimeField()),
                ("reference", models.UUIDField()),
            ],
            options={
                "db_table": "throttled_callers",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["client_id", "-hour"], name="throttled_by_client"),
                    models.Index(fields=["source", "-hour"], name="throttled_by_source"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "cause", "client_id", "source"),
                        name="throttled_once_an_hour",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureBucket",
            fields=[
                ("id", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("failures", models.PositiveIntegerField()),
                ("last_at", models.DateTimeField()),
                ("retry_at", models.DateTimeField()),
            ],
            options={
                "db_table": "failure_buckets",
                "default_permissions": (),
            },
        ),
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
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("generation", models.PositiveIntegerField(unique=True, verbose_name="generation")),
                ("kid", models.CharField(max_length=43, unique=True, verbose_name="key ID")),
                ("alg", models.CharField(max_length=8, verbose_name="algorithm")),
                ("public_jwk", models.JSONField(verbose_name="public key")),
                ("private_key", models.BinaryField()),
                ("created_at", models.DateTimeField(verbose_name="published")),
                ("signs_from", models.DateTimeField(verbose_name="signs from")),
                ("compromised_at", models.DateTimeField(null=True, verbose_name="compromised")),
            ],
            options={
                "verbose_name": "signing key",
                "verbose_name_plural": "signing keys",
                "db_table": "signing_keys",
                "ordering": ["-generation"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="LoginCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("reason", models.CharField(blank=True, max_length=32)),
                ("logins", models.PositiveBigIntegerField()),
            ],
            options={
                "db_table": "login_counts",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("hour", "reason"), name="login_counted_once")
                ],
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
            name="UsedAssertion",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "used_assertions",
                "default_permissions": (),
                "indexes": [models.Index(fields=["expires_at"], name="used_assertion_by_end")],
            },
        ),
        migrations.CreateModel(
            name="UsedProof",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "used_proofs",
                "default_permissions": (),
                "indexes": [models.Index(fields=["expires_at"], name="used_proof_by_end")],
            },
        ),
        migrations.CreateModel(
            name="LoginEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        editable=False, primary_key=True, serialize=False, verbose_name="reference"
                    ),
                ),
                ("at", models.DateTimeField(verbose_name="time")),
                ("reason", models.CharField(blank=True, max_length=32, verbose_name="reason")),
                ("since", models.DateTimeField(null=True, verbose_name="since")),
                (
                    "parameter",
                    models.CharField(blank=True, max_length=32, verbose_name="parameter"),
                ),
                ("detail", models.CharField(blank=True, max_length=200, verbose_name="detail")),
                (
                    "client_id",
                    models.CharField(blank=True, max_length=64, verbose_name="client ID as sent"),
                ),
                ("secret_id", models.BigIntegerField(null=True, verbose_name="secret")),
                (
                    "subject",
                    models.CharField(
                        blank=True, max_length=64, verbose_name="represented taxpayer"
                    ),
                ),
                ("actor", models.CharField(blank=True, max_length=64, verbose_name="intermediary")),
                ("scope", models.CharField(blank=True, max_length=255, verbose_name="scope")),
                ("kid", models.CharField(blank=True, max_length=43, verbose_name="key ID")),
                (
                    "source_address",
                    models.GenericIPAddressField(null=True, verbose_name="source address"),
                ),
                (
                    "user_agent",
                    models.CharField(blank=True, max_length=200, verbose_name="user agent"),
                ),
                (
                    "system_user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="system user",
                    ),
                ),
            ],
            options={
                "verbose_name": "login",
                "verbose_name_plural": "logins",
                "db_table": "login_events",
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["client_id", "-id"], name="login_by_client"),
                    models.Index(fields=["subject", "-id"], name="login_by_subject"),
                    models.Index(fields=["source_address", "-id"], name="login_by_address"),
                    models.Index(
                        condition=models.Q(("actor", ""), _negated=True),
                        fields=["actor", "-id"],
                        name="login_by_actor",
                    ),
                    models.Index(
                        condition=models.Q(("reason", ""), _negated=True),
                        fields=["reason", "-id"],
                        name="login_by_reason",
                    ),
                    models.Index(
                        condition=models.Q(
                            models.Q(("reason", ""), _negated=True), ("system_user__isnull", False)
                        ),
                        fields=["-id", "system_user", "reason", "at"],
                        name="login_refused_lately",
                    ),
                ],
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
                ("lookup", models.CharField(editable=False, max_length=80)),
                ("hint", models.CharField(editable=False, max_length=8)),
                ("created_at", models.DateTimeField(editable=False)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(editable=False, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                (
                    "protected_api",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="tokens.protectedapi",
                    ),
                ),
            ],
            options={
                "db_table": "protected_api_secrets",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("protected_api", "lookup"), name="api_secret_stored_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("created_at__lt", models.F("expires_at"))),
                        name="api_secret_created_before_expiry",
                    ),
                ],
            },
        ),
    ]
