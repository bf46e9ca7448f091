"""Who may register certificates of system users."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "9e5e5c4a1ef8"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0008_limit_permissions"),
        ("taxpayers", "0015_client_certificates"),
    ]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
