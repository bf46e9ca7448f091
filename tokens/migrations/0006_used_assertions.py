"""Client assertions that were used, until they expire: each logs in once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tokens", "0005_introspection_and_revocation")]
    operations = [
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
    ]
