"""Answers that are stored for an Idempotency-Key."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="StoredAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("client_id", models.CharField(max_length=64)),
                ("key", models.CharField(max_length=64)),
                ("request", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("headers", models.JSONField()),
                ("body", models.JSONField()),
                ("stored_at", models.DateTimeField()),
            ],
            options={
                "db_table": "management_answers",
                "default_permissions": (),
                "indexes": [models.Index(fields=["stored_at"], name="management_answer_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("client_id", "key"), name="management_answer_once"
                    )
                ],
            },
        ),
    ]
