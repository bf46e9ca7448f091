"""Failed logins and rejected requests on PostgreSQL: `rate_limits.backoff`, repeated in SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from taxpayers.sql import Row, Statement
from tokens.calls import FailedAuthentication, FailedLogin, RejectedRequest
from tokens.rate_limits.backoff import (
    ADDRESS_BACKOFF,
    FAILURES_EXPIRE_AFTER,
    PAIR_BACKOFF,
    REJECTION_BACKOFF,
    Backoff,
)
from tokens.rate_limits.throttle import Throttle
from tokens.store.postgresql_event import COLUMNS, EVENT, NOW, RECENT_EVENT, rows_sent, statement

_SHORTEST_PAUSE = timedelta(seconds=1)


def _failures(backoff: Backoff) -> str:
    """SQL of the number of failures after one more, by `Backoff.next_state`."""
    return f"""least({len(backoff.pauses_seconds)}, CASE
            WHEN b.last_at < {NOW} - interval '{FAILURES_EXPIRE_AFTER.total_seconds()} s' THEN 1
            ELSE b.failures + 1 END)"""


def _retry_at(backoff: Backoff, failures: str) -> str:
    return f"{NOW} + make_interval(secs => (ARRAY{list(backoff.pauses_seconds)})[{failures}])"


def _pause_of(bucket: str) -> str:
    """SQL of when this bucket accepts a failure again; NULL if it does now.

    Not a join: for a table that is still empty, PostgreSQL plans one that reads all of it.
    """
    return f"""SELECT b.retry_at FROM failure_buckets b
        WHERE b.id = s.{bucket} AND b.retry_at > {NOW} AND b.retry_at > b.last_at"""


def _by_kind(bucket: str, pair: str, address: str) -> str:
    """SQL of the value for this bucket: even ones are of pairs, odd ones of addresses."""
    return f"CASE WHEN {bucket} %% 2 = 0 THEN {pair} ELSE {address} END"


# In the order of the buckets, so that two batches never wait for each other.
_COUNT_FAILURES = f"""
WITH sent AS MATERIALIZED (
    SELECT s.*, greatest(({_pause_of("pair")}), ({_pause_of("address")})) AS waits_until
    FROM {rows_sent({"number": "int", "pair": "int", "address": "int"} | EVENT)} AS s
), bucket AS (
    INSERT INTO failure_buckets AS b (id, failures, last_at, retry_at)
    SELECT bucket, 1, {NOW},
        {_by_kind("bucket", _retry_at(PAIR_BACKOFF, "1"), _retry_at(ADDRESS_BACKOFF, "1"))}
    FROM (
        SELECT pair AS bucket FROM sent WHERE waits_until IS NULL
        UNION ALL SELECT address FROM sent WHERE waits_until IS NULL
    ) AS counted ORDER BY bucket
    ON CONFLICT (id) DO UPDATE SET
        failures = {_by_kind("b.id", _failures(PAIR_BACKOFF), _failures(ADDRESS_BACKOFF))},
        last_at = {NOW},
        retry_at = {
    _by_kind(
        "b.id",
        _retry_at(PAIR_BACKOFF, _failures(PAIR_BACKOFF)),
        _retry_at(ADDRESS_BACKOFF, _failures(ADDRESS_BACKOFF)),
    )
}
), event AS (
    INSERT INTO login_events ({COLUMNS}) SELECT {RECENT_EVENT} FROM sent
    WHERE waits_until IS NULL AND id IS NOT NULL
)
SELECT {NOW}, number, waits_until FROM sent"""

# Another session may count in a bucket at the same moment and begin its pause, which only the row
# itself shows, once it is locked: what it then does not accept is not stored.
_COUNT_REJECTIONS = f"""
WITH sent AS MATERIALIZED (
    SELECT s.*, ({_pause_of("bucket")}) AS waits_until
    FROM {rows_sent({"bucket": "int"} | EVENT)} AS s
), counted AS (
    INSERT INTO failure_buckets AS b (id, failures, last_at, retry_at)
    SELECT bucket, 1, {NOW}, {_retry_at(REJECTION_BACKOFF, "1")}
    FROM sent WHERE waits_until IS NULL ORDER BY bucket
    ON CONFLICT (id) DO UPDATE SET
        failures = {_failures(REJECTION_BACKOFF)},
        last_at = {NOW},
        retry_at = {_retry_at(REJECTION_BACKOFF, _failures(REJECTION_BACKOFF))}
    WHERE b.retry_at <= {NOW} OR b.retry_at <= b.last_at
    RETURNING b.id AS bucket
), event AS (
    INSERT INTO login_events ({COLUMNS})
    SELECT {RECENT_EVENT} FROM sent WHERE bucket IN (SELECT bucket FROM counted)
)
SELECT {NOW}, id, bucket IN (SELECT bucket FROM counted), waits_until FROM sent"""


def count_failures(
    failures: Sequence[FailedLogin | FailedAuthentication],
) -> Statement[list[Throttle | None]]:
    """At most one failure of a bucket."""

    def parse(rows: list[Row]) -> list[Throttle | None]:
        ends = {number: retry_at for _now, number, retry_at in rows}
        return [_throttle(ends[number]) for number in range(len(failures))]

    sent = [
        (number, failed.pair_bucket, failed.address_bucket, *_event_of(failed))
        for number, failed in enumerate(failures)
    ]
    return statement(_COUNT_FAILURES, sent, parse)


def _event_of(failed: FailedLogin | FailedAuthentication) -> tuple[object, ...]:
    return failed.event if isinstance(failed, FailedLogin) else ()


def count_rejections(requests: Sequence[RejectedRequest]) -> Statement[list[Throttle | None]]:
    """At most one request of a bucket."""

    def parse(rows: list[Row]) -> list[Throttle | None]:
        ends = {
            id_: None if is_stored else retry_at or now + _SHORTEST_PAUSE
            for now, id_, is_stored, retry_at in rows
        }
        return [_throttle(ends[request.event.id]) for request in requests]

    sent = [(request.bucket, *request.event) for request in requests]
    return statement(_COUNT_REJECTIONS, sent, parse)


def _throttle(retry_at: datetime | None) -> Throttle | None:
    return None if retry_at is None else Throttle(retry_at)
