"""The history in the order in which it is read: by moment and person, so by task."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0003_epochs")]
    operations = [
        migrations.AlterModelOptions(
            name="change",
            options={
                "default_permissions": ("view",),
                "ordering": ["-at", "-by", "-id"],
                "verbose_name": "change",
                "verbose_name_plural": "history",
            },
        ),
        migrations.RemoveIndex(model_name="change", name="change_by_time"),
        migrations.RemoveIndex(model_name="change", name="change_by_who"),
        migrations.RemoveIndex(model_name="change", name="change_by_action"),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(fields=["-at", "-by", "-id"], name="change_by_time"),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(fields=["by", "-at", "-id"], name="change_by_who"),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(fields=["action", "-at", "-by", "-id"], name="change_by_action"),
        ),
    ]
