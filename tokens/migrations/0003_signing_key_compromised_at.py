"""When a signing key was compromised: from then on it neither signs nor verifies."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0002_login_events_by_month"),
    ]

    operations = [
        migrations.AddField(
            model_name="signingkey",
            name="compromised_at",
            field=models.DateTimeField(null=True, verbose_name="compromised"),
        ),
    ]
