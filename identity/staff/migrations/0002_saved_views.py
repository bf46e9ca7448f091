"""Views of lists that staff save for themselves."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("list_name", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "staff_saved_views",
                "ordering": ["name"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "list_name", "name"), name="saved_view_named_once"
                    )
                ],
            },
        ),
    ]
