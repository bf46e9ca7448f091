"""An index for the logins of an intermediary; on PostgreSQL it is built while logins go on."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from tokens.login_events.partitions import TABLE, is_partitioned

_INDEX = models.Index(
    fields=["actor", "-id"],
    name="login_by_actor",
    condition=models.Q(("actor", ""), _negated=True),
)
_DEFINITION = "(actor, id DESC) WHERE NOT (actor = '')"


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Safe to repeat after an interruption, which may leave an index that is not valid."""
    connection = schema_editor.connection
    if not is_partitioned(connection):
        schema_editor.add_index(apps.get_model("tokens", "LoginEvent"), _INDEX)
        return
    # PostgreSQL builds no index of a partitioned table concurrently, only those of its partitions.
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX IF NOT EXISTS login_by_actor ON ONLY {TABLE} {_DEFINITION}")
        cursor.execute(
            "SELECT t.relid::regclass::text FROM pg_partition_tree(%s::regclass) t"
            " WHERE t.isleaf AND NOT EXISTS (SELECT FROM pg_index i JOIN pg_inherits h"
            " ON h.inhrelid = i.indexrelid AND h.inhparent = 'login_by_actor'::regclass"
            " WHERE i.indrelid = t.relid)",
            [TABLE],
        )
        for (partition,) in cursor.fetchall():
            name = f"{partition}_by_actor"
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name} ON {partition} {_DEFINITION}")
            cursor.execute(f"ALTER INDEX login_by_actor ATTACH PARTITION {name}")


def remove(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute("DROP INDEX IF EXISTS login_by_actor")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tokens", "0003_signing_key_compromised_at")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create, remove)],
            state_operations=[migrations.AddIndex(model_name="loginevent", index=_INDEX)],
        )
    ]
