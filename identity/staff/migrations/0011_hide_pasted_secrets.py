"""Deletes saved views that have a secret or a token in their search: they find nothing."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.redaction import holds_secret


def delete(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    views = apps.get_model("staff", "SavedView").objects
    found = [view.pk for view in views.all() if holds_secret(view.query) or holds_secret(view.name)]
    views.filter(pk__in=found).delete()


class Migration(migrations.Migration):
    dependencies = [("staff", "0010_second_person")]
    operations = [migrations.RunPython(delete, migrations.RunPython.noop, elidable=True)]
