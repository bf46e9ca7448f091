"""Who may register protected APIs, and end them."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "a51c3483cf0b"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0004_extend_and_import"),
        ("tokens", "0005_introspection_and_revocation"),
    ]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
