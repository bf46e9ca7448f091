"""Login events in one statement of PostgreSQL: a data-modifying WITH is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. The arithmetic is that of
`tokens.rate_limits.limits`, and the same tests run on both stores.
"""

from datetime import datetime

from taxpayers.sql import fetch
from tokens.login_events.entries import CountedLogin, Event, FailedLogin
from tokens.rate_limits.limits import (
    ADDRESS_BACKOFF,
    FAILURES_FORGOTTEN_AFTER,
    PAIR_BACKOFF,
    WINDOW,
    Backoff,
    Quota,
    Throttle,
    is_open,
)

_TYPES = {
    "id": "uuid",
    "at": "timestamptz",
    "since": "timestamptz",
    "system_user_id": "bigint",
    "secret_id": "bigint",
    "source_address": "inet",
}
_COLUMNS = ", ".join(Event._fields)
_VALUES = ", ".join(f"%s::{_TYPES.get(column, 'varchar')}" for column in Event._fields)
_ADD = f"INSERT INTO login_events ({_COLUMNS}) VALUES ({_VALUES}) RETURNING id"

_WINDOW_SECONDS = int(WINDOW.total_seconds())
_IS_OPEN = f"""(u.window_started_at > excluded.window_started_at - interval '{_WINDOW_SECONDS} s'
        AND u.window_started_at < excluded.window_started_at + interval '{_WINDOW_SECONDS} s')"""
_MINUTE = f"CASE WHEN {_IS_OPEN} THEN u.window_started_at ELSE excluded.window_started_at END"
_ADD_COUNTED = f"""
WITH usage AS (
    INSERT INTO client_usage AS u (system_user_id, window_started_at, used, secrets_used)
    VALUES (%s, %s, 1, jsonb_build_object(%s::bigint, %s::timestamptz))
    ON CONFLICT (system_user_id) DO UPDATE SET
        window_started_at = {_MINUTE},
        used = CASE WHEN {_IS_OPEN} THEN u.used + 1 ELSE 1 END,
        secrets_used = u.secrets_used || jsonb_build_object(%s::bigint, {_MINUTE})
    WHERE %s OR u.used < %s OR NOT {_IS_OPEN}
    RETURNING window_started_at, used
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM usage
)
SELECT window_started_at, used FROM usage"""
_ALLOWANCE = "SELECT window_started_at, used FROM client_usage WHERE system_user_id = %s"


def _count_failure(backoff: Backoff) -> str:
    pauses = backoff.pauses_seconds
    seconds = FAILURES_FORGOTTEN_AFTER.total_seconds()
    failures = f"""least({len(pauses)}, CASE
            WHEN b.last_at < excluded.last_at - interval '{seconds} s' THEN 1
            ELSE b.failures + 1 END)"""
    return f"""
    INSERT INTO failure_buckets AS b (id, failures, last_at, retry_at)
    SELECT %s, 1, %s, %s::timestamptz + interval '{pauses[0]} s' FROM wait WHERE until IS NULL
    ON CONFLICT (id) DO UPDATE SET
        failures = {failures},
        last_at = excluded.last_at,
        retry_at = excluded.last_at
            + make_interval(secs => (ARRAY{list(pauses)})[{failures}])"""


_ADD_FAILED = f"""
WITH wait AS (
    SELECT max(retry_at) AS until FROM failure_buckets
    WHERE id IN (%s, %s) AND retry_at > %s AND retry_at > last_at
), pair AS ({_count_failure(PAIR_BACKOFF)}
), address AS ({_count_failure(ADDRESS_BACKOFF)}
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM wait WHERE until IS NULL
)
SELECT until FROM wait"""


class PostgresqlLoginEventStore:
    """See `LoginEventStore`. Two logins of one client wait for each other on its usage."""

    def add(self, event: Event) -> None:
        fetch(_ADD, event)

    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        client, secret, limit, at = counted
        rows = fetch(_ADD_COUNTED, (client, at, secret, at, secret, limit == 0, limit, *event))
        if not rows:
            before = self.quota(client, limit, at)
            return Throttle(before.resets_at, before.limit)
        began_at, used = rows[0]
        return Quota(limit, used, began_at)

    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        pair, address, at = failed
        rows = fetch(_ADD_FAILED, (pair, address, at, pair, at, at, address, at, at, *event))
        until = rows[0][0]
        return None if until is None else Throttle(until)

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        rows = fetch(_ALLOWANCE, (system_user_id,))
        if not rows or not is_open(rows[0][0], at):
            return Quota(limit, 0, at)
        began_at, used = rows[0]
        return Quota(limit, used, began_at)
