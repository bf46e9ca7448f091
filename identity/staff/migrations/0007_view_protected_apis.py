"""Who may see protected APIs."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "c1355bea7254"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0006_login_method_permissions"),
        ("tokens", "0007_view_protected_apis"),
    ]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
