"""When each secret of a protected API was last used; empty for uses before this version."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tokens", "0008_used_proofs")]
    operations = [
        migrations.AddField(
            model_name="protectedapisecret",
            name="last_used_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
