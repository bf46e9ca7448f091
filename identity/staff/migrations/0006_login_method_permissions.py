"""Who may change how system users log in, and add their keys."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "e8ddf4b849b9"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0005_protected_api_permissions"),
        ("taxpayers", "0009_client_keys"),
    ]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
