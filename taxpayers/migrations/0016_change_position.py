"""The place of each change in the feed. Those that are there keep the order of their ids.

A column that may be NULL is added by ALTER TABLE on both databases.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("taxpayers", "0015_client_certificates"),
    ]

    operations = [
        migrations.AddField(
            model_name="change",
            name="position",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.RunSQL("UPDATE changes SET position = id", migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(
                condition=models.Q(("position__isnull", True)),
                fields=["id"],
                name="change_without_position",
            ),
        ),
        migrations.AddConstraint(
            model_name="change",
            constraint=models.UniqueConstraint(
                condition=models.Q(("position__isnull", False)),
                fields=("position",),
                name="change_by_position",
            ),
        ),
    ]
