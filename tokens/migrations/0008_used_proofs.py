"""DPoP proofs that were used, until they would be refused for their age: each is accepted once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tokens", "0007_view_protected_apis")]
    operations = [
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
    ]
