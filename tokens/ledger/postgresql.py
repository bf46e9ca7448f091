"""The ledger in one statement of PostgreSQL: a data-modifying WITH is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. The arithmetic is that of `tokens.limits`,
and the same tests run on both ledgers.
"""

from taxpayers.statements import fetch
from tokens.ledger.entries import Counted, Event, Failed
from tokens.limits import (
    ADDRESS_BACKOFF,
    FAILURES_FORGOTTEN_AFTER,
    PAIR_BACKOFF,
    WINDOW,
    Allowance,
    Backoff,
    Denial,
    is_open,
)

_TYPES = {
    "id": "uuid",
    "at": "timestamptz",
    "system_user_id": "bigint",
    "secret_id": "bigint",
    "source_address": "inet",
}
_COLUMNS = ", ".join(Event._fields)
_VALUES = ", ".join(f"%s::{_TYPES.get(column, 'varchar')}" for column in Event._fields)
_ADD = f"INSERT INTO login_events ({_COLUMNS}) VALUES ({_VALUES}) RETURNING id"

_WINDOW_SECONDS = int(WINDOW.total_seconds())
_IS_OPEN = f"""(a.window_started_at > excluded.window_started_at - interval '{_WINDOW_SECONDS} s'
        AND a.window_started_at < excluded.window_started_at + interval '{_WINDOW_SECONDS} s')"""
_COUNT = f"""
WITH counter AS (
    INSERT INTO login_allowances AS a (system_user_id, window_started_at, used)
    VALUES (%s, %s, 1)
    ON CONFLICT (system_user_id) DO UPDATE SET
        window_started_at =
            CASE WHEN {_IS_OPEN} THEN a.window_started_at ELSE excluded.window_started_at END,
        used = CASE WHEN {_IS_OPEN} THEN a.used + 1 ELSE 1 END
    WHERE %s OR a.used < %s OR NOT {_IS_OPEN}
    RETURNING window_started_at, used
), """
_TOUCH = """touched AS (
    UPDATE client_secrets SET last_used_at = %s WHERE id = %s AND EXISTS (SELECT 1 FROM counter)
), """
_ADD_IF_COUNTED = f"""event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM counter
)
SELECT window_started_at, used FROM counter"""
_ADD_COUNTED = _COUNT + _ADD_IF_COUNTED
_ADD_COUNTED_AND_TOUCH = _COUNT + _TOUCH + _ADD_IF_COUNTED
_ALLOWANCE = "SELECT window_started_at, used FROM login_allowances WHERE system_user_id = %s"


def _count_failure(backoff: Backoff) -> str:
    pauses = backoff.pauses_seconds
    seconds = FAILURES_FORGOTTEN_AFTER.total_seconds()
    failures = f"""least({len(pauses)}, CASE
            WHEN b.last_at < excluded.last_at - interval '{seconds} s' THEN 1
            ELSE b.failures + 1 END)"""
    return f"""
    INSERT INTO failure_buckets AS b (id, failures, last_at, open_at)
    SELECT %s, 1, %s, %s::timestamptz + interval '{pauses[0]} s' FROM wait WHERE until IS NULL
    ON CONFLICT (id) DO UPDATE SET
        failures = {failures},
        last_at = excluded.last_at,
        open_at = excluded.last_at
            + make_interval(secs => (ARRAY{list(pauses)})[{failures}])"""


_ADD_FAILED = f"""
WITH wait AS (
    SELECT max(open_at) AS until FROM failure_buckets
    WHERE id IN (%s, %s) AND open_at > %s AND open_at > last_at
), pair AS ({_count_failure(PAIR_BACKOFF)}
), address AS ({_count_failure(ADDRESS_BACKOFF)}
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_VALUES} FROM wait WHERE until IS NULL
)
SELECT until FROM wait"""


class PostgresqlLedger:
    """See `Ledger`. Two logins of one client wait for each other on its counter's row."""

    def add(self, event: Event) -> None:
        fetch(_ADD, event)

    def add_counted(self, event: Event, counted: Counted) -> Allowance | Denial:
        count = (counted.system_user_id, counted.at, counted.limit == 0, counted.limit)
        if counted.touched_secret_id is None:
            rows = fetch(_ADD_COUNTED, (*count, *event))
        else:
            touch = (counted.at, counted.touched_secret_id)
            rows = fetch(_ADD_COUNTED_AND_TOUCH, (*count, *touch, *event))
        if not rows:
            before = self.allowance(counted)
            return Denial(before.resets_at, before.limit)
        started_at, used = rows[0]
        return Allowance(counted.limit, used, started_at)

    def add_failed(self, event: Event, failed: Failed) -> Denial | None:
        pair, address, at = failed
        rows = fetch(_ADD_FAILED, (pair, address, at, pair, at, at, address, at, at, *event))
        until = rows[0][0]
        return None if until is None else Denial(until)

    def allowance(self, counted: Counted) -> Allowance:
        rows = fetch(_ALLOWANCE, (counted.system_user_id,))
        if not rows or not is_open(rows[0][0], counted.at):
            return Allowance(counted.limit, 0, counted.at)
        started_at, used = rows[0]
        return Allowance(counted.limit, used, started_at)
