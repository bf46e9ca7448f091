"""Webhooks, and what is to be delivered to them."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("url", models.CharField(max_length=2000)),
                ("description", models.CharField(blank=True, max_length=255)),
                ("event_types", models.JSONField(default=list)),
                ("is_active", models.BooleanField(default=True)),
                ("client_id", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField()),
                ("secret", models.TextField(editable=False)),
                ("former_secret", models.TextField(blank=True, editable=False)),
                ("former_secret_until", models.DateTimeField(editable=False, null=True)),
                ("paused_until", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("delivered", models.BigIntegerField(default=0, editable=False)),
                ("failed_attempts", models.BigIntegerField(default=0, editable=False)),
                ("given_up", models.BigIntegerField(default=0, editable=False)),
                ("last_delivered_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "db_table": "webhook_endpoints",
                "default_permissions": ("view",),
                "verbose_name": "webhook",
                "verbose_name_plural": "webhooks",
            },
        ),
        migrations.CreateModel(
            name="WebhookEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("type", models.CharField(max_length=64)),
                ("body", models.TextField()),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "db_table": "webhook_events",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="EndReminder",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("record_id", models.BigIntegerField()),
                ("ends_at", models.DateTimeField()),
                ("days", models.PositiveSmallIntegerField()),
            ],
            options={
                "db_table": "webhook_end_reminders",
                "default_permissions": (),
                "indexes": [models.Index(fields=["ends_at"], name="webhook_end_reminder_by_end")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "record_id", "ends_at", "days"),
                        name="webhook_end_reminder_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("record", models.CharField(max_length=80)),
                ("state", models.CharField(default="pending", max_length=16)),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("leased_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("last_attempt_at", models.DateTimeField(null=True)),
                ("last_result", models.CharField(blank=True, max_length=96)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="webhooks.webhookendpoint",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="webhooks.webhookevent",
                    ),
                ),
            ],
            options={
                "db_table": "webhook_deliveries",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["endpoint", "due_at", "id"],
                        name="webhook_delivery_due",
                    ),
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["endpoint", "record", "id"],
                        name="webhook_delivery_in_order",
                    ),
                    models.Index(
                        fields=["endpoint", "state", "-id"], name="webhook_delivery_by_state"
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="webhook_delivery_by_end",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("event", "endpoint"), name="webhook_delivery_once"
                    )
                ],
            },
        ),
    ]
