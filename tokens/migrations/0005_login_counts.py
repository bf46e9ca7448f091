"""Logins by the hour, and the latest refusals: what the first page reads (tokens/overview)."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0004_groups"),
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
            },
        ),
        migrations.AddIndex(
            model_name="loginevent",
            index=models.Index(
                condition=models.Q(
                    models.Q(("reason", ""), _negated=True), ("system_user__isnull", False)
                ),
                fields=["-id", "system_user", "reason", "at"],
                name="login_refused_lately",
            ),
        ),
        migrations.AddConstraint(
            model_name="logincount",
            constraint=models.UniqueConstraint(
                fields=("hour", "reason"), name="login_counted_once"
            ),
        ),
    ]
