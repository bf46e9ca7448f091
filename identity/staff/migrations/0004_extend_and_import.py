"""The groups of the roles, with the permissions to extend permissions and to import system users."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "ef3ae2fe38e9"


def update_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("staff", "0003_staff_accounts"),
        ("taxpayers", "0008_ends_and_imports"),
        ("tokens", "0003_signing_key_compromised_at"),
    ]
    operations = [migrations.RunPython(update_groups, migrations.RunPython.noop)]
