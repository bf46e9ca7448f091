"""The ledger in one transaction of SQLite, which is alone from its beginning: nothing races.

What a granted login writes is plain SQL, for it holds SQLite's only lock; the rest is the ORM. The
arithmetic is that of `tokens.rate_limits.limits`, and the same tests run on both ledgers.
"""

from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from taxpayers.models import RateLimitCounter
from taxpayers.sql import fetch
from tokens.login_events.entries import CountedLogin, Event, FailedLogin
from tokens.models import FailureBucket
from tokens.rate_limits.limits import (
    ADDRESS_BACKOFF,
    FAILURES_FORGOTTEN_AFTER,
    PAIR_BACKOFF,
    WINDOW,
    Quota,
    Throttle,
    is_open,
)

_ADD = f"""
INSERT INTO login_events ({", ".join(Event._fields)})
VALUES ({", ".join(["%s"] * len(Event._fields))}) RETURNING id"""

# Moments are kept as text that sorts by time.
_IS_OPEN = "(u.window_started_at > %(window_ago)s AND u.window_started_at < %(window_ahead)s)"
_MINUTE = f"CASE WHEN {_IS_OPEN} THEN u.window_started_at ELSE excluded.window_started_at END"
_COUNT = f"""
INSERT INTO client_usage AS u (system_user_id, window_started_at, used, secrets_used)
VALUES (%(client)s, %(at)s, 1, json_object(%(secret)s, %(at)s || '+00:00'))
ON CONFLICT (system_user_id) DO UPDATE SET
    window_started_at = {_MINUTE},
    used = CASE WHEN {_IS_OPEN} THEN u.used + 1 ELSE 1 END,
    secrets_used = json_set(u.secrets_used, '$.' || json_quote(%(secret)s), {_MINUTE} || '+00:00')
WHERE %(limit)s = 0 OR u.used < %(limit)s OR NOT {_IS_OPEN}
RETURNING window_started_at, used"""


class SqliteLoginEventStore:
    """See `LoginEventStore`."""

    def add(self, event: Event) -> None:
        values = (_text(v) if isinstance(v, datetime) else v for v in event[1:])
        fetch(_ADD, (event.id.hex, *values))

    @transaction.atomic
    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        client, secret, limit, at = counted
        rows = fetch(
            _COUNT,
            {
                "client": client,
                "secret": str(secret),
                "limit": limit,
                "at": _text(at),
                "window_ago": _text(at - WINDOW),
                "window_ahead": _text(at + WINDOW),
            },
        )
        if not rows:
            before = self.quota(client, limit, at)
            return Throttle(before.resets_at, before.limit)
        self.add(event)
        began_at, used = rows[0]
        return Quota(limit, used, began_at.replace(tzinfo=UTC))

    @transaction.atomic
    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        buckets = FailureBucket.objects.select_for_update().in_bulk(
            [failed.pair_bucket, failed.address_bucket]
        )
        pauses_until = [
            bucket.retry_at
            for bucket in buckets.values()
            # A failure without a pause is no reason to wait, not even for a clock that is behind.
            if bucket.retry_at > max(failed.at, bucket.last_at)
        ]
        if pauses_until:
            return Throttle(max(pauses_until))
        for id_, backoff in (
            (failed.pair_bucket, PAIR_BACKOFF),
            (failed.address_bucket, ADDRESS_BACKOFF),
        ):
            pauses = backoff.pauses_seconds
            failures = min(self._failures(buckets.get(id_), failed.at) + 1, len(pauses))
            FailureBucket.objects.update_or_create(
                id=id_,
                defaults={
                    "failures": failures,
                    "last_at": failed.at,
                    "retry_at": failed.at + timedelta(seconds=pauses[failures - 1]),
                },
            )
        self.add(event)
        return None

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        usage = RateLimitCounter.objects.filter(pk=system_user_id).first()
        if usage is None or not is_open(usage.window_started_at, at):
            return Quota(limit, 0, at)
        return Quota(limit, usage.used, usage.window_started_at)

    @staticmethod
    def _failures(bucket: FailureBucket | None, at: datetime) -> int:
        if bucket is None or bucket.last_at < at - FAILURES_FORGOTTEN_AFTER:
            return 0
        return bucket.failures


def _text(moment: datetime) -> str:
    text = connection.ops.adapt_datetimefield_value(moment)
    assert text is not None  # noqa: S101 - only None becomes None
    return text
