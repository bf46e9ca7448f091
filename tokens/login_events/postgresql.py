"""Login events in one statement of PostgreSQL: a data-modifying WITH is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. It repeats what `tokens.rate_limits` defines
as pure functions, and is tested with the same table of cases.
"""

from datetime import datetime

from taxpayers.sql import fetch
from tokens.login_events.events import CountedLogin, Event, FailedLogin
from tokens.rate_limits.backoff import (
    ADDRESS_BACKOFF,
    FAILURES_EXPIRE_AFTER,
    PAIR_BACKOFF,
    Backoff,
)
from tokens.rate_limits.quota import WINDOW, CounterState, Quota, current_quota
from tokens.rate_limits.throttle import Throttle

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

# `count_login`: a new row is a new window; of two rows, `excluded` is the one of this login.
_WINDOW_SECONDS = int(WINDOW.total_seconds())
_IS_OPEN = f"""(c.window_started_at > excluded.window_started_at - interval '{_WINDOW_SECONDS} s'
        AND c.window_started_at < excluded.window_started_at + interval '{_WINDOW_SECONDS} s')"""
_WINDOW = f"CASE WHEN {_IS_OPEN} THEN c.window_started_at ELSE excluded.window_started_at END"
_ADD_COUNTED = f"""
WITH counter AS (
    INSERT INTO client_usage AS c (system_user_id, window_started_at, used, secrets_used)
    VALUES (%s, %s, 1, jsonb_build_object(%s::bigint, %s::timestamptz))
    ON CONFLICT (system_user_id) DO UPDATE SET
        window_started_at = {_WINDOW},
        used = CASE WHEN {_IS_OPEN} THEN c.used + 1 ELSE 1 END,
        secrets_used = c.secrets_used || jsonb_build_object(%s::bigint, {_WINDOW})
    WHERE %s OR c.used < %s OR NOT {_IS_OPEN}
    RETURNING window_started_at, used
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM counter
)
SELECT window_started_at, used FROM counter"""
_COUNTER = "SELECT window_started_at, used FROM client_usage WHERE system_user_id = %s"


def _count_failure(backoff: Backoff) -> str:
    """SQL of `Backoff.next_state`."""
    pauses = backoff.pauses_seconds
    expire_seconds = FAILURES_EXPIRE_AFTER.total_seconds()
    failures = f"""least({len(pauses)}, CASE
            WHEN b.last_at < excluded.last_at - interval '{expire_seconds} s' THEN 1
            ELSE b.failures + 1 END)"""
    return f"""
    INSERT INTO failure_buckets AS b (id, failures, last_at, retry_at)
    SELECT %s, 1, %s, %s::timestamptz + interval '{pauses[0]} s' FROM wait WHERE retry_at IS NULL
    ON CONFLICT (id) DO UPDATE SET
        failures = {failures},
        last_at = excluded.last_at,
        retry_at = excluded.last_at
            + make_interval(secs => (ARRAY{list(pauses)})[{failures}])"""


_ADD_FAILED = f"""
WITH wait AS (
    SELECT max(retry_at) AS retry_at FROM failure_buckets
    WHERE id IN (%s, %s) AND retry_at > %s AND retry_at > last_at
), pair AS ({_count_failure(PAIR_BACKOFF)}
), address AS ({_count_failure(ADDRESS_BACKOFF)}
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM wait WHERE retry_at IS NULL
)
SELECT retry_at FROM wait"""


class PostgresqlLoginEventStore:
    """See `LoginEventStore`. Two logins of one client wait for each other on its counter."""

    def add(self, event: Event) -> None:
        fetch(_ADD, event)

    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        client, secret, limit, at = counted
        rows = fetch(_ADD_COUNTED, (client, at, secret, at, secret, limit == 0, limit, *event))
        if not rows:
            return Throttle(self.quota(client, limit, at).resets_at, limit)
        window_started_at, used = rows[0]
        return Quota(limit, used, window_started_at)

    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        pair, address, at = failed
        rows = fetch(_ADD_FAILED, (pair, address, at, pair, at, at, address, at, at, *event))
        retry_at = rows[0][0]
        return None if retry_at is None else Throttle(retry_at)

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        rows = fetch(_COUNTER, (system_user_id,))
        return current_quota(CounterState(*rows[0]) if rows else None, limit, at)
