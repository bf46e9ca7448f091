"""The permission codes that the contract starts with (contract 4)."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

CODES = {
    "documents:submit": "Submit documents in the taxpayer's name",
    "documents:view": "View the taxpayer's documents",
    "documents:cancel": "Cancel documents that the taxpayer issued",
    "documents:reject": "Reject documents that the taxpayer received",
}


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    model = apps.get_model("taxpayers", "PermissionCode")
    for code, description in CODES.items():
        model.objects.get_or_create(code=code, defaults={"description": description})


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0001_initial")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
