"""Login events on PostgreSQL: many logins in one statement, which is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. It repeats what `tokens.rate_limits` defines
as pure functions, by the clock of the database, and is tested with the same table of cases.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from taxpayers.facts.query import facts_statement
from taxpayers.facts.values import FactsQuery
from taxpayers.sql import Row, Statement
from tokens.login_events.events import CountedLogin, Event, FailedLogin, Write, event_of
from tokens.rate_limits.backoff import (
    ADDRESS_BACKOFF,
    FAILURES_EXPIRE_AFTER,
    PAIR_BACKOFF,
    Backoff,
)
from tokens.rate_limits.quota import WINDOW, Quota
from tokens.rate_limits.throttle import Throttle

# How far the moment of a decision may be from the moment at which it is stored. More means that the
# node's idea of the time is wrong, or that nobody waits for the answer any more.
MAX_AGE_SECONDS = 2

_TYPES = {
    "id": "uuid",
    "at": "timestamptz",
    "since": "timestamptz",
    "system_user_id": "bigint",
    "secret_id": "bigint",
    "source_address": "inet",
}
_COLUMNS = ", ".join(Event._fields)
_EVENT = ", ".join(f"{column} {_TYPES.get(column, 'varchar')}" for column in Event._fields)
_IS_RECENT = f"""abs(extract(epoch FROM statement_timestamp() - at)) <= {MAX_AGE_SECONDS}"""

# An event that comes too late has no moment, and so the statement fails: its login has had a 503.
_RECENT_EVENT = ", ".join(
    f"CASE WHEN {_IS_RECENT} THEN at END" if column == "at" else column for column in Event._fields
)

_ADD = f"""
INSERT INTO login_events ({_COLUMNS})
SELECT {_RECENT_EVENT} FROM json_to_recordset(%s::json) AS sent({_EVENT})
RETURNING statement_timestamp()"""

_STORED = """
SELECT statement_timestamp(), e.id, c.window_started_at, c.used
FROM login_events e LEFT JOIN client_usage c ON c.system_user_id = e.system_user_id
WHERE e.id = ANY(%s)"""

# `count_login`, for clients whose epoch is the one that was sent. A row that somebody else has
# locked is skipped: nobody waits for another client's change, and no two batches wait for each
# other. RETURNING shows the new values.
_WINDOW_SECONDS = int(WINDOW.total_seconds())
_NOW = "statement_timestamp()"
_IS_OPEN = f"""(c.window_started_at > {_NOW} - interval '{_WINDOW_SECONDS} s'
        AND c.window_started_at < {_NOW} + interval '{_WINDOW_SECONDS} s')"""
_WINDOW = f"CASE WHEN {_IS_OPEN} THEN c.window_started_at ELSE {_NOW} END"
_COUNT = f"""
WITH counted AS (
    UPDATE client_usage c SET
        window_started_at = {_WINDOW},
        used = CASE WHEN {_IS_OPEN} THEN c.used + 1 ELSE 1 END,
        secrets_used = c.secrets_used || jsonb_build_object(locked.used_secret_id, {_WINDOW})
    FROM (
        SELECT sent.* FROM json_to_recordset(%s::json)
            AS sent(client bigint, used_secret_id bigint, "limit" int, epoch bigint, {_EVENT})
        CROSS JOIN LATERAL (
            SELECT FROM client_usage o
            WHERE o.system_user_id = sent.client AND o.epoch = sent.epoch
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS own_row
        WHERE {_IS_RECENT}
    ) AS locked
    WHERE c.system_user_id = locked.client
        AND (locked."limit" = 0 OR c.used < locked."limit" OR NOT {_IS_OPEN})
    RETURNING locked.*, c.window_started_at, c.used
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_COLUMNS} FROM counted
)
SELECT {_NOW}, client, window_started_at, used FROM counted"""


def _failures(backoff: Backoff) -> str:
    """SQL of the number of failures after one more, by `Backoff.next_state`."""
    return f"""least({len(backoff.pauses_seconds)}, CASE
            WHEN b.last_at < {_NOW} - interval '{FAILURES_EXPIRE_AFTER.total_seconds()} s' THEN 1
            ELSE b.failures + 1 END)"""


def _retry_at(backoff: Backoff, failures: str) -> str:
    return f"{_NOW} + make_interval(secs => (ARRAY{list(backoff.pauses_seconds)})[{failures}])"


def _pause_of(bucket: str) -> str:
    """SQL of when this bucket accepts a failure again; NULL if it does now.

    Not a join: for a table that is still empty, PostgreSQL plans one that reads all of it.
    """
    return f"""SELECT b.retry_at FROM failure_buckets b
        WHERE b.id = s.{bucket} AND b.retry_at > {_NOW} AND b.retry_at > b.last_at"""


def _by_kind(bucket: str, pair: str, address: str) -> str:
    """SQL of the value for this bucket: even ones are of pairs, odd ones of addresses."""
    return f"CASE WHEN {bucket} %% 2 = 0 THEN {pair} ELSE {address} END"


# In the order of the buckets, so that two batches never wait for each other.
_COUNT_FAILURES = f"""
WITH sent AS MATERIALIZED (
    SELECT s.*, greatest(({_pause_of("pair")}), ({_pause_of("address")})) AS waits_until
    FROM json_to_recordset(%s::json) AS s(pair int, address int, {_EVENT})
), bucket AS (
    INSERT INTO failure_buckets AS b (id, failures, last_at, retry_at)
    SELECT bucket, 1, {_NOW},
        {_by_kind("bucket", _retry_at(PAIR_BACKOFF, "1"), _retry_at(ADDRESS_BACKOFF, "1"))}
    FROM (
        SELECT pair AS bucket FROM sent WHERE waits_until IS NULL
        UNION ALL SELECT address FROM sent WHERE waits_until IS NULL
    ) AS counted ORDER BY bucket
    ON CONFLICT (id) DO UPDATE SET
        failures = {_by_kind("b.id", _failures(PAIR_BACKOFF), _failures(ADDRESS_BACKOFF))},
        last_at = {_NOW},
        retry_at = {
    _by_kind(
        "b.id",
        _retry_at(PAIR_BACKOFF, _failures(PAIR_BACKOFF)),
        _retry_at(ADDRESS_BACKOFF, _failures(ADDRESS_BACKOFF)),
    )
}
), event AS (
    INSERT INTO login_events ({_COLUMNS}) SELECT {_RECENT_EVENT} FROM sent
    WHERE waits_until IS NULL
)
SELECT {_NOW}, id, waits_until FROM sent"""


def statement_for(calls: Sequence[Any]) -> Statement[list[Any]]:
    """One statement for calls of one kind; its results are in the order of the calls.

    At most one login of a client, and one failure of a bucket.
    """
    return _STATEMENTS[type(calls[0])](calls)


def results_of_stored(calls: Sequence[Write]) -> Statement[dict[Write, Any]]:
    """The results of those of these calls that were stored before."""
    by_id = {event_of(call).id: call for call in calls}

    def parse(rows: list[Row]) -> dict[Write, Any]:
        return {by_id[id_]: _result(by_id[id_], *counter) for _now, id_, *counter in rows}

    return Statement(_STORED, (list(by_id),), parse)


def _result(call: Write, window_started_at: datetime, used: int) -> Quota | None:
    return Quota(call.limit, used, window_started_at) if isinstance(call, CountedLogin) else None


def _add(events: Sequence[Event]) -> Statement[list[None]]:
    return _statement(_ADD, [event._asdict() for event in events], lambda rows: [None] * len(rows))


def _count(logins: Sequence[CountedLogin]) -> Statement[list[Quota | None]]:
    def parse(rows: list[Row]) -> list[Quota | None]:
        counted = {client: (window, used) for _now, client, window, used in rows}
        return [_quota(login.limit, counted.get(login.system_user_id)) for login in logins]

    sent = [
        login.event._asdict()
        | {
            "client": login.system_user_id,
            "used_secret_id": login.secret_id,
            "limit": login.limit,
            "epoch": login.epoch,
        }
        for login in logins
    ]
    return _statement(_COUNT, sent, parse)


def _quota(limit: int, counted: tuple[datetime, int] | None) -> Quota | None:
    return None if counted is None else Quota(limit, counted[1], counted[0])


def _count_failures(logins: Sequence[FailedLogin]) -> Statement[list[Throttle | None]]:
    def parse(rows: list[Row]) -> list[Throttle | None]:
        ends = {id_: retry_at for _now, id_, retry_at in rows}
        return [_throttle(ends[login.event.id]) for login in logins]

    sent = [
        login.event._asdict() | {"pair": login.pair_bucket, "address": login.address_bucket}
        for login in logins
    ]
    return _statement(_COUNT_FAILURES, sent, parse)


def _throttle(retry_at: datetime | None) -> Throttle | None:
    return None if retry_at is None else Throttle(retry_at)


def _statement(sql: str, sent: object, parse: Callable[[list[Row]], Any]) -> Statement[Any]:
    return Statement(sql, (msgspec.json.encode(sent).decode(),), parse)


_STATEMENTS: dict[type, Callable[[Sequence[Any]], Statement[list[Any]]]] = {
    FactsQuery: facts_statement,
    Event: _add,
    CountedLogin: _count,
    FailedLogin: _count_failures,
}
