"""The groups of the staff (taxpayers/roles.py). A change of that table needs a migration like this."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from taxpayers.groups import make_groups

EDITION = "cee2133d0493"  # of the table that this puts in force: tests/test_roles.py compares it


def make(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0003_what_staff_may_do"),
        ("taxpayers", "0003_what_staff_may_do"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
