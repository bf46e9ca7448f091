"""Who may limit system users, and from where secrets may be used."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "484797e55bdb"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0007_view_protected_apis"),
        ("taxpayers", "0014_limits"),
    ]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
