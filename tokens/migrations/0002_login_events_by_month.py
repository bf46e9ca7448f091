"""On PostgreSQL the login events are partitioned by month (contract 5).

Apart from the first migration, at whose end Django creates the indexes of its tables.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

from tokens.login_events.partitions import TABLE, is_partitioned, make_partitions


def partition(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if not is_partitioned():
        return
    # The table that Django just made is the pattern: its columns, defaults and indexes stay.
    schema_editor.execute(f"ALTER TABLE {TABLE} RENAME TO {TABLE}_pattern")
    schema_editor.execute(
        f"CREATE TABLE {TABLE} (LIKE {TABLE}_pattern INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        " PARTITION BY RANGE (id)"
    )
    schema_editor.execute(f"DROP TABLE {TABLE}_pattern")
    schema_editor.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id)")
    model = apps.get_model("tokens", "LoginEvent")
    for index in model._meta.indexes:
        schema_editor.add_index(model, index)
    # What fits no month is stored here and not lost.
    schema_editor.execute(f"CREATE TABLE {TABLE}_default PARTITION OF {TABLE} DEFAULT")
    make_partitions(timezone.now())


class Migration(migrations.Migration):
    dependencies = [("tokens", "0001_initial")]
    operations = [migrations.RunPython(partition, migrations.RunPython.noop)]
