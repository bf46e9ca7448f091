"""Hides what could be a secret in the filters of exports that are in the history.

From now on none gets there: `identity.staff.typed_secrets`, `taxpayers.services.history`.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from taxpayers.redaction import hide_secrets


def hide(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    changes = apps.get_model("taxpayers", "Change").objects
    exports = changes.filter(action__in=["export_registry", "export_logins"])
    for change in exports.iterator():
        filters = change.after.get("filters", "")
        if (hidden := hide_secrets(filters)) != filters:
            change.after["filters"] = hidden
            change.save(update_fields=["after"])


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0016_change_position")]
    operations = [migrations.RunPython(hide, migrations.RunPython.noop, elidable=True)]
