"""The table of the cache, which counts failed sign-ins over all processes."""

from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    # By its name, so that it is there when Redis is taken away again.
    database = schema_editor.connection.alias
    call_command("createcachetable", settings.CACHE_TABLE, database=database, verbosity=0)


class Migration(migrations.Migration):
    dependencies = []
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
