"""The groups of the roles, and the cache table.

A change of the table of roles (identity/staff/accounts/roles.py) needs another migration that calls
`make_groups` and has the new edition.
"""

from django.conf import settings
from django.core.management import call_command
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from identity.staff.accounts.groups import make_groups

EDITION = "cee2133d0493"  # of the table of roles; tests/staff/test_roles.py compares that of the newest migration


def create_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    make_groups(apps)


def create_cache_table(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The table of Django's cache, which counts failed sign-ins over all processes."""
    database = schema_editor.connection.alias
    call_command("createcachetable", settings.CACHE_TABLE, database=database, verbosity=0)


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0001_initial"),
        ("taxpayers", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.RunPython(create_groups, migrations.RunPython.noop),
        migrations.RunPython(create_cache_table, migrations.RunPython.noop),
    ]
