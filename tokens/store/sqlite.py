"""Login events on SQLite: one transaction for all logins that wait.

It has the only write lock, so limits need no SQL: the pure functions decide about the rows read.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from taxpayers.facts.query import read_facts_from_sqlite, status_facts
from taxpayers.facts.values import FactsQuery
from taxpayers.models import StatusIndex
from taxpayers.sql import fetch
from tokens import calls
from tokens.models import FailureBucket, RevokedToken
from tokens.rate_limits.backoff import BucketState, count_failure, count_rejection
from tokens.rate_limits.quota import CounterState, count_login
from tokens.rate_limits.throttle import Throttle
from tokens.status_lists.format import REUSED_AFTER
from tokens.store.api_secret_use import store_use_on_sqlite
from tokens.store.token_query import read_token_from_sqlite
from tokens.store.used_once import SOME_EXPIRED

_ADD = f"""
INSERT INTO login_events ({", ".join(calls.Event._fields)})
VALUES ({", ".join(["%s"] * len(calls.Event._fields))}) RETURNING id"""
_READ_COUNTER = """
SELECT window_started_at, used FROM client_usage WHERE system_user_id = %s AND epoch = %s
AND (%s IS NULL OR EXISTS (
    SELECT 1 FROM status_indexes WHERE "index" = %s AND version = %s))"""
_SAVE_COUNTER = """
UPDATE client_usage
SET window_started_at = %s, used = %s, secrets_used = json_patch(secrets_used, %s)
WHERE system_user_id = %s RETURNING used"""

_USE = """
INSERT INTO {table} (id, expires_at) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id"""
_TABLES = {calls.AssertionUse: "used_assertions", calls.ProofUse: "used_proofs"}
_FORGET = SOME_EXPIRED.format(table="{table}", before="%s", lock="")

_REUSE = """
DELETE FROM ended_status_indexes WHERE number = (
    SELECT number FROM ended_status_indexes WHERE ended_at < %s ORDER BY number LIMIT 1)
RETURNING "index" """
_TAKE = """
INSERT INTO status_indexes AS x
    (system_user_id, secret_id, tin, rob, actor, scopes, permissions, "index", check_at)
SELECT %s, %s, %s, %s, %s, json(%s), json(%s),
    coalesce(%s, (SELECT coalesce(max(number), -1) + 1 FROM (
        SELECT max("index") AS number FROM status_indexes
        UNION ALL SELECT max("index") FROM ended_status_indexes
        UNION ALL SELECT max(ended_index) FROM status_changes))),
    %s
WHERE EXISTS (SELECT 1 FROM client_usage WHERE system_user_id = %s AND epoch = %s)
ON CONFLICT (system_user_id, secret_id, tin, rob, actor) DO UPDATE SET
    scopes = json_patch(x.scopes, excluded.scopes),
    permissions = json_patch(x.permissions, excluded.permissions),
    version = CASE WHEN json_patch(x.scopes, excluded.scopes) = x.scopes
        AND json_patch(x.permissions, excluded.permissions) = x.permissions
        THEN x.version ELSE excluded.version END,
    check_at = min(
        coalesce(x.check_at, excluded.check_at), coalesce(excluded.check_at, x.check_at))
RETURNING "index", version, scopes, permissions"""


def perform(asked: Sequence[Any]) -> list[Any]:
    """The results of these calls, in their order. Raises django.db.DatabaseError."""
    if all(isinstance(call, FactsQuery | calls.TokenQuery) for call in asked):
        return [_PERFORM[type(call)](call) for call in asked]  # readers do not wait
    with transaction.atomic():
        return [_PERFORM[type(call)](call) for call in asked]


def _add(event: calls.Event) -> None:
    fetch(_ADD, [_stored(value) for value in event])


def _count(login: calls.CountedLogin) -> calls.CountResult:
    index, version = login.status_index, login.status_version
    rows = fetch(_READ_COUNTER, (login.system_user_id, login.epoch, index, index, version))
    if not rows:
        return None
    # SQLite has no time zones: Django stores every moment in UTC, without saying so.
    counter = CounterState(rows[0][0].replace(tzinfo=UTC), rows[0][1])
    outcome = count_login(counter, login.limit, datetime.now(UTC))
    if isinstance(outcome, Throttle):
        return None
    if login.proof is not None and not _use(login.proof):
        return calls.ProofUsedBefore()
    if login.assertion is not None and not _use(login.assertion):
        return calls.UsedBefore()
    began = outcome.window_started_at
    # A refused login counts, but is no use of its secret.
    used = {} if login.event.reason else {login.secret_id: began.isoformat()}
    fetch(_SAVE_COUNTER, (_stored(began), outcome.used, json.dumps(used), login.system_user_id))
    _add(login.event)
    return outcome


def _count_failure(login: calls.FailedLogin | calls.FailedAuthentication) -> Throttle | None:
    ids = (login.pair_bucket, login.address_bucket)
    before = _read_buckets(ids)
    outcome = count_failure(before.get(ids[0]), before.get(ids[1]), datetime.now(UTC))
    if isinstance(outcome, Throttle):
        return outcome
    _save_buckets(dict(zip(ids, outcome, strict=True)))
    if isinstance(login, calls.FailedLogin):
        _add(login.event)
    return None


def _count_rejection(request: calls.RejectedRequest) -> Throttle | None:
    before = _read_buckets([request.bucket])
    outcome = count_rejection(before.get(request.bucket), datetime.now(UTC))
    if isinstance(outcome, Throttle):
        return outcome
    _save_buckets({request.bucket: outcome})
    _add(request.event)
    return None


def _revoke(row: calls.TokenRevocation) -> None:
    if row.jti is not None and row.expires_at is not None:
        revoked = RevokedToken(jti=row.jti, expires_at=row.expires_at, revoked_at=datetime.now(UTC))
        RevokedToken.objects.bulk_create([revoked], ignore_conflicts=True)  # once is enough
    if row.status_index is not None:
        StatusIndex.objects.filter(pk=row.status_index).delete()


def _use(use: calls.AssertionUse | calls.ProofUse) -> bool:
    sent = (use.id.hex, _stored(use.expires_at))
    return bool(fetch(_USE.format(table=_TABLES[type(use)]), sent))


def _use_and_forget(use: calls.AssertionUse | calls.ProofUse) -> bool:
    expired = _stored(datetime.now(UTC) - timedelta(minutes=1))
    fetch(_FORGET.format(table=_TABLES[type(use)]), (expired,))
    return _use(use)


def _read_buckets(ids: Collection[int]) -> dict[int, BucketState]:
    rows = FailureBucket.objects.filter(pk__in=ids).values_list("pk", *BucketState._fields)
    return {id_: BucketState(*state) for id_, *state in rows}


def _save_buckets(states: Mapping[int, BucketState]) -> None:
    FailureBucket.objects.bulk_create(
        [FailureBucket(pk=pk, **state._asdict()) for pk, state in states.items()],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=BucketState._fields,
    )


def _take_index(call: calls.TakeStatusIndex) -> calls.TakenIndex:
    """As the statement of PostgreSQL; it reserves none: here a statement is no round trip."""
    now = datetime.now(UTC)
    reused = fetch(_REUSE, [_stored(now - REUSED_AFTER)])
    names = (json.dumps(dict.fromkeys(each, 1)) for each in (call.scopes, call.permissions))
    rows = fetch(
        _TAKE,
        [
            *(*call[:5], *names, reused[0][0] if reused else None),
            *(_stored(call.check_at), call.system_user_id, call.epoch),
        ],
    )
    return calls.TakenIndex(status_facts(*rows[0]) if rows else None)


def _stored(value: object) -> object:
    """The value in the form in which Django's fields store it."""
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value.hex if isinstance(value, UUID) else value


_PERFORM: dict[type, Callable[[Any], Any]] = {
    FactsQuery: read_facts_from_sqlite,
    calls.CountedLogin: _count,
    calls.FailedLogin: _count_failure,
    calls.FailedAuthentication: _count_failure,
    calls.TokenQuery: read_token_from_sqlite,
    calls.TokenRevocation: _revoke,
    calls.AssertionUse: _use_and_forget,
    calls.ProofUse: _use_and_forget,
    calls.TakeStatusIndex: _take_index,
    calls.ApiSecretUse: store_use_on_sqlite,
    calls.RejectedRequest: _count_rejection,
}
