"""Taxpayers that are not active are found among a million: staff list them, and their clients."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0004_order_of_history")]
    operations = [
        migrations.AddIndex(
            model_name="taxpayer",
            index=models.Index(
                condition=models.Q(("is_active", False)),
                fields=["tin", "rob"],
                name="taxpayer_not_active",
            ),
        ),
    ]
