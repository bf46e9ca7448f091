"""When the last secret of a system user ends: by it a list finds all without a valid one."""

from django.db import migrations, models

FILL = """UPDATE system_users SET last_secret_ends_at = (
    SELECT max(expires_at) FROM client_secrets
    WHERE system_user_id = system_users.id AND revoked_at IS NULL)"""


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0009_client_keys")]
    operations = [
        migrations.AddField(
            model_name="systemuser",
            name="last_secret_ends_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(fields=["last_secret_ends_at"], name="system_user_by_last_secret"),
        ),
    ]
