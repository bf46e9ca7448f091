"""The epoch of a client: a random number in its row of `client_usage`. Pure.

It identifies one state of all that decides what a login of the client gets. Any change of that
state (a service, SQL by hand, COPY, TRUNCATE) gives each client concerned a new epoch in the same
transaction, by triggers. So facts that were read together with an epoch are up to date as long as
the client still has it. It is no counter: no value returns, not even after a backup was restored.
"""

from collections.abc import Mapping

# The default of the column; evaluated for each row.
RANDOM_EPOCH = {
    "postgresql": "hashtextextended(gen_random_uuid()::text, 0)",
    "sqlite": "random()",
}
# Only these columns of these two tables decide a login. In the other tables each column counts.
DECIDING_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "system_users": (
        *("id", "client_id", "taxpayer_id", "scopes", "logins_per_minute"),
        *("expires_at", "blocked_at", "token_endpoint_auth_method"),
        "token_binding",
        *("allowed_permissions", "allowed_taxpayers", "only_on_behalf"),
    ),
    "taxpayers": ("id", "tin", "rob", "is_active"),
}
# The last window of a client that never logged in.
_LONG_AGO = {"postgresql": "1970-01-01 00:00:00+00", "sqlite": "1970-01-01 00:00:00"}


def add_rows(vendor: str, clients: str = "system_users") -> str:
    """SQL that adds the row of each of these clients; one that has a row gets a new epoch."""
    # WHERE: without it, SQLite takes ON CONFLICT for the condition of a join.
    return f"""INSERT INTO client_usage (system_user_id, window_started_at, used, secrets_used)
    SELECT id, '{_LONG_AGO[vendor]}', 0, '{{}}' FROM {clients} WHERE true ORDER BY id
    ON CONFLICT (system_user_id) DO UPDATE SET epoch = excluded.epoch"""


def trigger_name(table: str, event: str) -> str:
    """The name of a trigger, and on PostgreSQL of its function."""
    return f"renew_epochs_after_{event.lower()}_on_{table}"
