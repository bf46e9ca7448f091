"""Login events in one transaction of SQLite, which holds the only write lock from its beginning.

So limits need no SQL: the rows are read, the pure function decides, the rows are written.
"""

import json
from datetime import UTC, datetime
from uuid import UUID

from django.db import connection, transaction

from taxpayers.sql import fetch
from tokens.login_events.events import CountedLogin, Event, FailedLogin
from tokens.models import FailureBucket
from tokens.rate_limits.backoff import BucketState, count_failure
from tokens.rate_limits.quota import CounterState, Quota, count_login, current_quota
from tokens.rate_limits.throttle import Throttle

_ADD = f"""
INSERT INTO login_events ({", ".join(Event._fields)})
VALUES ({", ".join(["%s"] * len(Event._fields))}) RETURNING id"""
_READ_COUNTER = "SELECT window_started_at, used FROM client_usage WHERE system_user_id = %s"
_SAVE_COUNTER = """
INSERT INTO client_usage (system_user_id, window_started_at, used, secrets_used)
VALUES (%s, %s, %s, %s)
ON CONFLICT (system_user_id) DO UPDATE SET
    window_started_at = excluded.window_started_at,
    used = excluded.used,
    secrets_used = json_patch(secrets_used, excluded.secrets_used)
RETURNING used"""


class SqliteLoginEventStore:
    """See `LoginEventStore`."""

    def add(self, event: Event) -> None:
        fetch(_ADD, [_stored(value) for value in event])

    @transaction.atomic
    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        client, secret, limit, at = counted
        outcome = count_login(_counter(client), limit, at)
        if isinstance(outcome, Quota):
            began = outcome.window_started_at
            secret_used = json.dumps({secret: began.isoformat()})
            fetch(_SAVE_COUNTER, (client, _stored(began), outcome.used, secret_used))
            self.add(event)
        return outcome

    @transaction.atomic
    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        ids = (failed.pair_bucket, failed.address_bucket)
        rows = FailureBucket.objects.filter(pk__in=ids).values_list("pk", *BucketState._fields)
        before = {id_: BucketState(*state) for id_, *state in rows}
        outcome = count_failure(before.get(ids[0]), before.get(ids[1]), failed.at)
        if isinstance(outcome, Throttle):
            return outcome
        FailureBucket.objects.bulk_create(
            [FailureBucket(pk=pk, **new._asdict()) for pk, new in zip(ids, outcome, strict=True)],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=BucketState._fields,
        )
        self.add(event)
        return None

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        return current_quota(_counter(system_user_id), limit, at)


def _counter(system_user_id: int) -> CounterState | None:
    rows = fetch(_READ_COUNTER, (system_user_id,))
    # SQLite has no time zones: Django stores every moment in UTC, without saying so.
    return CounterState(rows[0][0].replace(tzinfo=UTC), rows[0][1]) if rows else None


def _stored(value: object) -> object:
    """The value in the form in which Django's fields store it."""
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value.hex if isinstance(value, UUID) else value
