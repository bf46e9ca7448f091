"""Which changes of the history were made as one: an import, or one task for several records."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0006_names_by_any_part")]
    operations = [
        migrations.AddField(
            model_name="change",
            name="task_id",
            field=models.UUIDField(editable=False, null=True, verbose_name="task"),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(
                condition=models.Q(("task_id__isnull", False)),
                fields=["task_id", "-id"],
                name="change_of_task",
            ),
        ),
    ]
