"""The triggers of SQLite that renew epochs: for each row. There is one writer at a time. Pure."""

from collections.abc import Iterator

from taxpayers.facts.epochs.row import DECIDING_COLUMNS, RANDOM_EPOCH, add_rows, trigger_name

# The clients that a row of each table concerns; {row} is OLD or NEW.
_CLIENTS = {
    "system_users": "{row}.id",
    "credentials": "{row}.system_user_id",
    "taxpayers": """
        SELECT id FROM system_users WHERE taxpayer_id = {row}.id
        UNION SELECT u.id FROM granted_permissions g
        JOIN intermediaries i ON i.id = g.intermediary_id
        JOIN system_users u ON u.taxpayer_id = i.taxpayer_id WHERE g.taxpayer_id = {row}.id""",
    "intermediaries": "SELECT id FROM system_users WHERE taxpayer_id = {row}.taxpayer_id",
    "granted_permissions": """
        SELECT u.id FROM intermediaries i JOIN system_users u ON u.taxpayer_id = i.taxpayer_id
        WHERE i.id = {row}.intermediary_id""",
    "granted_permission_codes": """
        SELECT u.id FROM granted_permissions g
        JOIN intermediaries i ON i.id = g.intermediary_id
        JOIN system_users u ON u.taxpayer_id = i.taxpayer_id
        WHERE g.id = {row}.grantedpermission_id""",
}
_RENEW = (
    f"UPDATE client_usage SET epoch = {RANDOM_EPOCH['sqlite']}"
    " WHERE system_user_id IN ({clients})"
)
_ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}

_OTHERS = {
    ("system_users", "INSERT"): add_rows("sqlite", "(SELECT NEW.id AS id)"),
    ("system_users", "DELETE"): "DELETE FROM client_usage WHERE system_user_id = OLD.id",
    # A client has its row as long as it exists.
    ("client_usage", "DELETE"): add_rows(
        "sqlite", "(SELECT id FROM system_users WHERE id = OLD.system_user_id)"
    ),
}


def _renewals(table: str, event: str) -> str:
    clients = (_CLIENTS[table].format(row=row) for row in _ROWS[event])
    return "; ".join(_RENEW.format(clients=of_row) for of_row in clients)


TRIGGERS: dict[tuple[str, str], str] = {
    (table, event): _renewals(table, event)
    for table in _CLIENTS
    for event in _ROWS
    if (table, event) != ("taxpayers", "INSERT")  # nothing depends on it yet
} | _OTHERS


def create_statements() -> Iterator[str]:
    """Creates the triggers."""
    for (table, event), actions in TRIGGERS.items():
        yield f"""CREATE TRIGGER {trigger_name(table, event)} AFTER {event} ON {table}
FOR EACH ROW {_condition(table, event)} BEGIN {actions}; END"""


def _condition(table: str, event: str) -> str:
    if event != "UPDATE" or table not in DECIDING_COLUMNS:
        return ""
    columns = DECIDING_COLUMNS[table]
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return f"WHEN ({old}) IS NOT ({new})"
