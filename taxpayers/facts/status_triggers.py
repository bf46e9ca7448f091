"""Triggers by which every change, also by SQL, reaches the status lists. Pure.

1. A client whose epoch is renewed, or who is gone, is checked: the service decides again whether
   each of its indexes is still good. So all changes arrive, and no rule is repeated here.
2. An index whose row is deleted is ended. Its client gets a new epoch, so that no login goes on
   with the index that a node remembers.
3. What is switched off ends its indexes at once: they stay ended even if it is switched on again
   before any node has looked. The same where a client is deleted, or gets another id.

They run after those of the epochs (`taxpayers/facts/epochs/`), whose functions they use: names of
triggers decide. Clients are locked before their indexes, so that no two changes deadlock.
"""

from collections.abc import Iterator, Mapping

from taxpayers.facts.epochs.row import RANDOM_EPOCH

_CHECK = "INSERT INTO status_changes (system_user_id) VALUES ({row}.system_user_id)"
_AGENTS = """SELECT u.id FROM granted_permissions g
        JOIN intermediaries i ON i.id = g.intermediary_id
        JOIN system_users u ON u.taxpayer_id = i.taxpayer_id WHERE g.taxpayer_id = {row}.id"""
# When the indexes of a row that is updated end, and which these are; {old} and {new} are the row.
_SWITCHES = {
    "system_users": (
        "{old}.client_id <> {new}.client_id"
        " OR ({old}.blocked_at IS NULL AND {new}.blocked_at IS NOT NULL)"
        # Older tokens are not bound as all must be from now on.
        " OR ({old}.token_binding <> {new}.token_binding AND {new}.token_binding <> '')",
        "x.system_user_id = {old}.id",
    ),
    "taxpayers": (
        "{old}.is_active AND NOT {new}.is_active",
        f"""x.system_user_id IN (SELECT id FROM system_users WHERE taxpayer_id = {{old}}.id)
        OR (x.tin = {{old}}.tin AND x.rob = {{old}}.rob AND x.actor <> ''
        AND x.system_user_id IN ({_AGENTS.replace("{row}", "{old}")}))""",
    ),
    "intermediaries": (
        "{old}.is_active AND NOT {new}.is_active",
        """x.actor <> '' AND x.system_user_id IN (
        SELECT id FROM system_users WHERE taxpayer_id = {old}.taxpayer_id)""",
    ),
}
_FUNCTION = """end_status_indexes(ids bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM count(*) FROM (
        SELECT FROM client_usage WHERE system_user_id IN (
            SELECT system_user_id FROM status_indexes WHERE index = ANY(ids))
        ORDER BY system_user_id FOR NO KEY UPDATE) AS locked;
    DELETE FROM status_indexes WHERE index = ANY(ids);
END $$"""

# The table, when, and what is done.
_Triggers = Mapping[str, tuple[str, str, str]]
_ROWS = "FOR EACH ROW"
_BOTH_ROWS = "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT"
_OLD_ROWS = "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"

_BOTH: _Triggers = {
    "then_check_status_after_update_on_client_usage": (
        *("client_usage", f"AFTER UPDATE OF epoch ON client_usage {_ROWS}"),
        _CHECK.format(row="NEW"),
    ),
    "then_check_status_after_delete_on_client_usage": (
        *("client_usage", f"AFTER DELETE ON client_usage {_ROWS}"),
        _CHECK.format(row="OLD"),
    ),
}
# A row of a table that is truncated can only be read before.
_POSTGRESQL: _Triggers = {
    **_BOTH,
    "then_check_status_after_truncate_on_client_usage": (
        *("client_usage", "AFTER TRUNCATE ON client_usage"),
        "INSERT INTO status_changes (system_user_id)"
        " SELECT DISTINCT system_user_id FROM status_indexes",
    ),
    "then_end_status_after_delete_on_status_indexes": (
        *("status_indexes", f"AFTER DELETE ON status_indexes {_OLD_ROWS}"),
        "INSERT INTO status_changes (ended_index) SELECT index FROM old_rows;"
        " PERFORM renew_epochs(ARRAY(SELECT DISTINCT system_user_id FROM old_rows))",
    ),
    "then_end_status_before_truncate_on_status_indexes": (
        *("status_indexes", "BEFORE TRUNCATE ON status_indexes"),
        "INSERT INTO status_changes (ended_index) SELECT index FROM status_indexes;"
        " PERFORM renew_epochs(ARRAY(SELECT DISTINCT system_user_id FROM status_indexes))",
    ),
    "then_end_status_after_delete_on_system_users": (
        *("system_users", f"AFTER DELETE ON system_users {_OLD_ROWS}"),
        "PERFORM end_status_indexes(ARRAY(SELECT x.index FROM old_rows o"
        " JOIN status_indexes x ON x.system_user_id = o.id))",
    ),
    "then_end_status_after_truncate_on_system_users": (
        *("system_users", "AFTER TRUNCATE ON system_users"),
        "PERFORM end_status_indexes(ARRAY(SELECT index FROM status_indexes))",
    ),
}
_SQLITE: _Triggers = {
    **_BOTH,
    "then_end_status_after_delete_on_status_indexes": (
        *("status_indexes", f"AFTER DELETE ON status_indexes {_ROWS}"),
        'INSERT INTO status_changes (ended_index) VALUES (OLD."index");'
        f" UPDATE client_usage SET epoch = {RANDOM_EPOCH['sqlite']}"
        " WHERE system_user_id = OLD.system_user_id",
    ),
    "then_end_status_after_delete_on_system_users": (
        *("system_users", f"AFTER DELETE ON system_users {_ROWS}"),
        "DELETE FROM status_indexes WHERE system_user_id = OLD.id",
    ),
}


def create_statements(vendor: str, schema: str = "") -> Iterator[str]:
    """Creates the triggers; `schema` is that of the tables, quoted, and empty on SQLite."""
    triggers = _triggers(vendor)
    if vendor == "sqlite":
        for name, (_table, moment, action) in triggers.items():
            yield f"CREATE TRIGGER {name} {moment} BEGIN {action}; END"
        return
    yield f"CREATE FUNCTION {_FUNCTION.format(schema=schema)}"
    for name, (_table, moment, action) in triggers.items():
        # With its owner's rights: a role that changes the registry needs none on these tables.
        yield f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    {action};
    RETURN NULL;
END $$"""
        yield f"CREATE TRIGGER {name} {moment} EXECUTE FUNCTION {name}()"


def trigger_names(vendor: str) -> dict[str, str]:
    """The name of each trigger, and its table."""
    return {name: table for name, (table, *_) in _triggers(vendor).items()}


def _triggers(vendor: str) -> _Triggers:
    ends = _ends_on_sqlite if vendor == "sqlite" else _ends_on_postgresql
    triggers = dict(_SQLITE if vendor == "sqlite" else _POSTGRESQL)
    for table, (switched, concerned) in _SWITCHES.items():
        triggers[f"then_end_status_after_update_on_{table}"] = ends(table, switched, concerned)
    return triggers


def _ends_on_postgresql(table: str, switched: str, concerned: str) -> tuple[str, str, str]:
    return (
        *(table, f"AFTER UPDATE ON {table} {_BOTH_ROWS}"),
        "PERFORM end_status_indexes(ARRAY(SELECT x.index FROM old_rows o"
        " JOIN new_rows n ON n.id = o.id JOIN status_indexes x ON"
        f" {concerned.format(old='o')} WHERE {switched.format(old='o', new='n')}))",
    )


def _ends_on_sqlite(table: str, switched: str, concerned: str) -> tuple[str, str, str]:
    return (
        table,
        f"AFTER UPDATE ON {table} {_ROWS} WHEN {switched.format(old='OLD', new='NEW')}",
        'DELETE FROM status_indexes WHERE "index" IN ('
        f'SELECT x."index" FROM status_indexes x WHERE {concerned.format(old="OLD")})',
    )
