"""Changes of whole tables: TRUNCATE, loads of data, and a backup that is restored."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.oracle.registry import MODELS, ORDER, TABLES

WHOLESALE = Changes()

# The registry as it was when the run began, and as it was at some moment since.
_COPIES = ("first", "latest")
_STATUS = ("status_indexes", "status_changes", "ended_status_indexes")
_COPIED = (*TABLES, "client_usage", *_STATUS)
CREATE_COPIES = "".join(
    f"CREATE SCHEMA {copy};"
    + "".join(f"CREATE TABLE {copy}.{table} AS TABLE {table};" for table in _COPIED)
    for copy in _COPIES
)
# It would lock a table at a moment that no seed repeats.
NO_AUTOVACUUM = "".join(
    f"ALTER TABLE {table} SET (autovacuum_enabled = false);" for table in _COPIED
)
TAKE_COPY = "BEGIN ISOLATION LEVEL REPEATABLE READ;{}COMMIT".format(
    "".join(
        f"DELETE FROM latest.{table}; INSERT INTO latest.{table} TABLE {table};"
        for table in _COPIED
    )
)
# Of these not all rows come back after a TRUNCATE, nor those that refer to one that does not.
_MAY_LACK_ROWS = (
    *("credentials", "intermediaries"),
    *("granted_permissions", "granted_permission_codes"),
)
_PARENTS = {
    "granted_permissions": "intermediary_id IN (SELECT id FROM intermediaries)",
    "granted_permission_codes": "grantedpermission_id IN (SELECT id FROM granted_permissions)",
}
_ALL = 1000
# Those that refer to another table come after it.
CASCADE = {
    "taxpayers": TABLES,
    "intermediaries": ("intermediaries", "granted_permissions", "granted_permission_codes"),
    "system_users": ("system_users", "credentials"),
    "credentials": ("credentials",),
    "granted_permissions": ("granted_permissions", "granted_permission_codes"),
    "granted_permission_codes": ("granted_permission_codes",),
}


@WHOLESALE.add(weight=3)
def put_row_back(context: Context) -> None:
    """A row is again as it was in a copy; not a code, whose key is not the same in each run."""
    copy, table = context.rng.choice(_COPIES), context.rng.choice(TABLES[:-1])
    fields = MODELS[table]._meta.concrete_fields
    columns = [str(field.column) for field in fields if not field.primary_key]
    rows = getattr(context.registry, table)
    context.execute(
        f"UPDATE {table} AS now SET ({', '.join(columns)}) ="
        f" ROW({', '.join(f'old.{column}' for column in columns)})"
        f" FROM {copy}.{table} AS old WHERE old.id = now.id AND now.id = %s",
        context.choose(rows).id,
    )


@WHOLESALE.add(weight=3, is_counter_changed=True, is_held=False)
def load_copy(context: Context) -> None:
    """All rows of the registry are deleted and inserted as they were in a copy; triggers act."""
    copy = context.rng.choice(_COPIES)
    for table in ("permission_requests", *reversed(TABLES)):
        context.execute(f"DELETE FROM {table}")
    for table in TABLES:
        context.execute(f"INSERT INTO {table} TABLE {copy}.{table}")


@WHOLESALE.add(weight=5, is_counter_changed=True, is_held=False)
def restore_backup(context: Context) -> None:
    """All as it was in a copy, without any trigger; of the counters only the epochs."""
    copy = context.rng.choice(_COPIES)
    context.execute("SET LOCAL session_replication_role = replica")
    for table in reversed((*TABLES, *_STATUS)):
        context.execute(f"DELETE FROM {table}")
    for table in (*TABLES, *_STATUS):
        context.execute(f"INSERT INTO {table} TABLE {copy}.{table}")
    context.execute(
        "DELETE FROM client_usage WHERE system_user_id NOT IN (SELECT id FROM system_users)"
    )
    context.execute(
        "INSERT INTO client_usage (system_user_id, window_started_at, used, secrets_used)"
        " SELECT id, '1970-01-01 00:00Z', 0, '{}' FROM system_users ON CONFLICT DO NOTHING"
    )
    context.execute(
        f"UPDATE client_usage AS now SET epoch = old.epoch FROM {copy}.client_usage AS old"
        " WHERE old.system_user_id = now.system_user_id"
    )


@WHOLESALE.add(weight=10, is_counter_changed=True, is_held=False)
def truncate(context: Context) -> None:
    """One table with all that refer to it; the rows of a copy come back, but not all."""
    copy, emptied = context.rng.choice(_COPIES), context.rng.choice(list(CASCADE))
    context.execute(f"TRUNCATE {emptied} CASCADE")
    for table in CASCADE[emptied]:
        most = context.rng.randrange(8) if table in _MAY_LACK_ROWS else _ALL
        order = ", ".join(f"{column} DESC" for column in ORDER[table])
        context.execute(
            f"INSERT INTO {table} SELECT * FROM {copy}.{table} WHERE {_PARENTS.get(table, 'true')}"
            f" ORDER BY {order} LIMIT %s",
            most,
        )


@WHOLESALE.add(is_counter_changed=True, weight=2, is_held=False)
def truncate_counters(context: Context) -> None:
    context.execute("TRUNCATE client_usage")
