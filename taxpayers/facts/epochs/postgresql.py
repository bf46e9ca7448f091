"""The triggers of PostgreSQL that renew epochs: once for each statement, for all of its rows. Pure.

Two things make them right while others write, too:

1. A change must not overlook a client, a role or a permission that another transaction is just
   adding. So both lock the taxpayers that connect them, and the change looks for its clients in a
   statement after that, which sees what was committed while it waited. At a stricter isolation
   level it would not see it: there such a change is refused.
2. Rows are locked in one order: represented taxpayers, permissions, intermediaries, their
   taxpayers, clients; of each kind by key. So two changes do not deadlock.

Ids are collected in arrays: what was planned for the rows of one statement, be it a million, is
used for the next one too.
"""

from collections.abc import Iterator

from taxpayers.facts.epochs.row import DECIDING_COLUMNS, add_rows, trigger_name

_FUNCTIONS = {
    "lock_taxpayers": """(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'The registry can only be changed at the isolation level READ COMMITTED.';
    END IF;
    PERFORM count(*) FROM (
        SELECT FROM taxpayers WHERE id = ANY(ids) ORDER BY id FOR NO KEY UPDATE) AS locked;
END $$""",
    "lock_intermediaries": """(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Returns their taxpayers, which are locked as well.
DECLARE
    taxpayers_of bigint[];
BEGIN
    taxpayers_of := ARRAY(
        SELECT taxpayer_id FROM intermediaries WHERE id = ANY(ids) ORDER BY id FOR SHARE);
    PERFORM lock_taxpayers(taxpayers_of);
    RETURN taxpayers_of;
END $$""",
    "renew_epochs": """(clients bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count(*) FROM (
        SELECT FROM client_usage WHERE system_user_id = ANY(clients)
        ORDER BY system_user_id FOR NO KEY UPDATE) AS locked;
    UPDATE client_usage SET epoch = DEFAULT WHERE system_user_id = ANY(clients);
END $$""",
    "renew_epochs_of_taxpayers": """(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
-- The epochs of all clients registered against these taxpayers, which are locked.
BEGIN
    PERFORM renew_epochs(ARRAY(SELECT id FROM system_users WHERE taxpayer_id = ANY(ids)));
END $$""",
}

# The rows as they were and as they are, if they differ in these columns.
_DIFFERENT = """((SELECT {0} FROM old_rows EXCEPT SELECT {0} FROM new_rows)
        UNION ALL (SELECT {0} FROM new_rows EXCEPT SELECT {0} FROM old_rows)) AS changed"""
# Rows that are connected to another taxpayer than before.
_MOVED = "(SELECT {0} FROM new_rows EXCEPT SELECT {0} FROM old_rows) AS moved"

# What each function does with the rows in {changed} and, of these, the ones in {connected}, which
# connect a client to a taxpayer or an intermediary since this statement.
_OF_SECRETS = "PERFORM renew_epochs(ARRAY(SELECT system_user_id FROM {changed}));"
_UNLESS_NONE = """ids := ARRAY(SELECT id FROM {changed});
    IF ids = '{}' THEN RETURN NULL; END IF;  -- other columns changed"""
_OF_TAXPAYERS = f"""{_UNLESS_NONE}
    PERFORM renew_epochs_of_taxpayers(ids || lock_intermediaries(ARRAY(
        SELECT intermediary_id FROM granted_permissions WHERE taxpayer_id = ANY(ids))));"""
_OF_INTERMEDIARIES = """ids := ARRAY(SELECT taxpayer_id FROM {changed});
    PERFORM lock_taxpayers(ids);
    PERFORM renew_epochs_of_taxpayers(ids);"""
_LOCK_CONNECTED = "PERFORM lock_taxpayers(ARRAY(SELECT taxpayer_id FROM {connected}));\n    "
_OF_PERMISSIONS = """PERFORM renew_epochs_of_taxpayers(
        lock_intermediaries(ARRAY(SELECT intermediary_id FROM {changed})));"""
_OF_CODES = """ids := ARRAY(SELECT grantedpermission_id FROM {changed});
    PERFORM renew_epochs_of_taxpayers(lock_intermediaries(ARRAY(
        SELECT intermediary_id FROM granted_permissions WHERE id = ANY(ids)
        ORDER BY id FOR SHARE)));"""
_OF_SYSTEM_USERS = f"{_UNLESS_NONE}\n    {_LOCK_CONNECTED}PERFORM renew_epochs(ids);"
_ADD_ROWS = f"{add_rows('postgresql', 'new_rows')};"
_DELETE_ROWS = """ids := ARRAY(SELECT id FROM old_rows);
    PERFORM renew_epochs(ids);  -- locks them in order
    DELETE FROM client_usage WHERE system_user_id = ANY(ids);"""
# A client has its row as long as it exists.
_RESTORE_ROWS = f"""ids := ARRAY(SELECT system_user_id FROM old_rows);
    {add_rows("postgresql", "(SELECT id FROM system_users WHERE id = ANY(ids)) AS existing")};"""
_RENEW_ALL = f"""LOCK TABLE system_users IN SHARE MODE;  -- waits for those who add clients
    DELETE FROM client_usage WHERE NOT EXISTS (SELECT FROM system_users WHERE id = system_user_id);
    {add_rows("postgresql")};"""

_ROWS = {
    "INSERT": "REFERENCING NEW TABLE AS new_rows",
    "UPDATE": "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "DELETE": "REFERENCING OLD TABLE AS old_rows",
    "TRUNCATE": "",
}
_EVERY_CHANGE = ("INSERT", "UPDATE", "DELETE")

TRIGGERS: dict[tuple[str, str], str] = {
    ("system_users", "INSERT"): _LOCK_CONNECTED + _ADD_ROWS,
    ("system_users", "UPDATE"): _OF_SYSTEM_USERS,
    ("system_users", "DELETE"): _DELETE_ROWS,
    **{("credentials", event): _OF_SECRETS for event in _EVERY_CHANGE},
    ("taxpayers", "UPDATE"): _OF_TAXPAYERS,
    ("taxpayers", "DELETE"): _OF_TAXPAYERS,
    **{("intermediaries", event): _OF_INTERMEDIARIES for event in _EVERY_CHANGE},
    ("granted_permissions", "INSERT"): _LOCK_CONNECTED + _OF_PERMISSIONS,
    ("granted_permissions", "UPDATE"): _LOCK_CONNECTED + _OF_PERMISSIONS,
    ("granted_permissions", "DELETE"): _OF_PERMISSIONS,
    **{("granted_permission_codes", event): _OF_CODES for event in _EVERY_CHANGE},
    ("client_usage", "DELETE"): _RESTORE_ROWS,
}
TRIGGERS |= {(table, "TRUNCATE"): _RENEW_ALL for table, _ in TRIGGERS}
_CONNECTION = {
    "system_users": "id, taxpayer_id",
    "granted_permissions": "id, taxpayer_id, intermediary_id",
}


def create_statements(schema: str) -> Iterator[str]:
    """Creates the functions and triggers; `schema` is that of the tables, quoted."""
    for name, definition in _FUNCTIONS.items():
        yield f"CREATE FUNCTION {name}{definition}"
    for table, event in TRIGGERS:
        # With its owner's rights: a role that changes the registry needs none on the counters.
        yield f"""CREATE FUNCTION {trigger_name(table, event)}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    ids bigint[];
BEGIN
    {_body(table, event)}
    RETURN NULL;
END $$"""
        yield f"""CREATE TRIGGER {trigger_name(table, event)} AFTER {event} ON {table}
{_ROWS[event]} FOR EACH STATEMENT EXECUTE FUNCTION {trigger_name(table, event)}()"""


def _body(table: str, event: str) -> str:
    changed, connected = {
        "INSERT": ("new_rows", "new_rows"),
        "UPDATE": (
            _DIFFERENT.format(", ".join(DECIDING_COLUMNS.get(table, ("*",)))),
            _MOVED.format(_CONNECTION.get(table)),
        ),
    }.get(event, ("old_rows", ""))
    body = TRIGGERS[table, event]
    return body.replace("{changed}", changed).replace("{connected}", connected)
