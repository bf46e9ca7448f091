"""What must hold for each login that ended, the limits and the tables. Raises ClaimBroken."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from proofs.interleavings.logins.login import Login
from proofs.interleavings.oracle.history import History, Outcome, expected
from proofs.interleavings.oracle.registry import Registry, read_registry
from taxpayers.client_keys import key_name
from taxpayers.models import PermissionRequest
from taxpayers.models.permission_request import APPROVED, OPEN
from tokens.calls import CountedLogin, Event, FailedLogin, RejectedRequest
from tokens.metrics import ISSUED
from tokens.rate_limits.backoff import BucketState, count_failure, count_rejection
from tokens.rate_limits.quota import CounterState, Quota, count_login
from tokens.rate_limits.throttle import Throttle
from tokens.refusals.table import REFUSALS, ProtocolReason


class ClaimBroken(AssertionError):
    """A claim about a login, or about the tables, does not hold."""


NEVER = CounterState(datetime.fromisoformat("1970-01-01T00:00:00+00:00"), 0)
LastUses = dict[int, datetime]  # of the secrets of a client, by their ids


class Limits:
    """Counters of clients and buckets of callers, as they must be."""

    def __init__(self) -> None:
        self.counters: dict[int, CounterState] = {}
        self.last_uses: dict[int, LastUses] = {}  # of each client: the starts of their windows
        self.buckets: dict[int, BucketState] = {}

    def count(self, login: CountedLogin, limit: int, result: Quota, at: datetime) -> None:
        """The login was stored. Raises ClaimBroken if its client's window had no room."""
        client = login.system_user_id
        before = self.counters.get(client)
        right = count_login(before, limit, at)
        _check(result == right, f"limits are exact: {before} is followed by {right}, not {result}")
        self.counters[client] = CounterState(result.window_started_at, result.used)
        if not login.event.reason:
            self.last_uses[client][login.secret_id] = result.window_started_at

    def fail(self, login: FailedLogin, result: Throttle | None, at: datetime) -> None:
        """The failure was stored, or has to wait. Raises ClaimBroken if it should not."""
        ids = (login.pair_bucket, login.address_bucket)
        right = count_failure(self.buckets.get(ids[0]), self.buckets.get(ids[1]), at)
        if not isinstance(right, Throttle):
            self.buckets |= zip(ids, right, strict=True)
        _check_pause(right, result)

    def reject(self, request: RejectedRequest, result: Throttle | None, at: datetime) -> None:
        """The request was stored, or has to wait. Raises ClaimBroken if it should not."""
        right = count_rejection(self.buckets.get(request.bucket), at)
        if not isinstance(right, Throttle):
            self.buckets[request.bucket] = right
        _check_pause(right, result)

    def retry_at(self, client: int, limit: int, at: datetime) -> datetime | None:
        """When the client can log in again; None: now."""
        outcome = count_login(self.counters.get(client), limit, at)
        return outcome.retry_at if isinstance(outcome, Throttle) else None


def _check_pause(right: object, result: Throttle | None) -> None:
    pause = right if isinstance(right, Throttle) else None
    _check(result == pause, f"pauses are exact: {right}, not {result}")


MAX_CLOCK_ERROR = timedelta(seconds=2)  # what a node may be off (contract 1)
_EVENTS = f"""
SELECT {", ".join(Event._fields).replace("source_address", "host(source_address)")}
FROM login_events"""
_COUNTERS = "SELECT system_user_id, window_started_at, used, secrets_used FROM client_usage"
Decided = dict[str, str]  # the final state of each connection, by the lookup of its key
_BUCKETS = f"SELECT id, {', '.join(BucketState._fields)} FROM failure_buckets"


def check_answer(login: Login, history: History) -> None:
    """The answer is that of a state in force between the login's arrival and its end."""
    assert login.ended is not None
    reason = login.ended.outcome
    if reason == ProtocolReason.RATE_LIMITED:
        _check(not login.recorded, "a 429 leaves no event")
        _check(bool(login.may_be_limited), "no 429 while the window has room")
    elif reason == ProtocolReason.TEMPORARILY_UNAVAILABLE:
        _check(not login.recorded, "a 503 leaves no event")
        _check(bool(login.may_be_unavailable), "no 503 while the database answers in time")
    else:
        _check(len(login.recorded) == 1, "one event for each answer")
        event = login.recorded[0].event
        refused_for = "" if reason == ISSUED else reason
        _check(event.reason == refused_for, "the event has the reason of the answer")
        status = REFUSALS[refused_for].status if refused_for else 200
        _check(login.ended.answer.status == status, "the status is that of the reason")
        if login.asked.is_readable:
            _check_outcome(login, event, history)


def _check_outcome(login: Login, event: Event, history: History) -> None:
    found = _found(login, event)
    seen: list[tuple[int, Outcome]] = []
    for step, state in history.in_force_since(login.arrived_in):
        right = expected(login, state.facts(login.query), event.at)
        if found == right:
            return
        if not seen or seen[-1][1] != right:
            seen.append((step, right))
    states = "".join(f"\n    since step {step}: {right}" for step, right in seen)
    raise ClaimBroken(
        "a login is answered by a state that was in force between its arrival and its end:"
        f"\n    {found}\n  but the states were{states}"
    )


def _found(login: Login, event: Event) -> Outcome:
    fields = (event.reason, event.since, event.parameter, event.detail)
    ids = (event.system_user_id, event.secret_id)
    if event.reason:
        return Outcome(*fields, *ids, event.subject, event.actor, event.scope, None)
    claims = login.claims
    _check(claims["jti"] == str(event.id), "the token has the id of its event")
    _check(claims["client_id"] == event.client_id, "the token is for its client")
    same = (claims["sub"], claims.get("act", {}).get("sub", ""), claims["scope"])
    _check(same == (event.subject, event.actor, event.scope), "the token is as its event")
    permissions = claims.get("permissions")
    return Outcome(*fields, *ids, *same, None if permissions is None else tuple(permissions))


def is_recent(event: Event, now: datetime) -> bool:
    """Whether the event is of this moment, as far as a node knows the database's clock."""
    return abs(event.at - now) <= MAX_CLOCK_ERROR


def check_recent(event: Event, now: datetime) -> None:
    _check(is_recent(event, now), f"nothing is stored of a decision long ago: {event.at}, {now}")


def check_too_late(event: Event, now: datetime) -> None:
    _check(not is_recent(event, now), f"what is stored at its time is not refused: {event}, {now}")


def check_tables(stored: dict[UUID, Event], limits: Limits, known: Registry) -> None:
    """The tables hold what was stored, once, and nothing else."""
    _check_same(stored, {row[0]: Event(*row) for row in _rows(_EVENTS)})
    counters = _rows(_COUNTERS)
    _check_same(limits.counters, {row[0]: CounterState(*row[1:3]) for row in counters})
    _check_same(limits.last_uses, {row[0]: _moments(row[3]) for row in counters})
    _check_same(limits.buckets, {row[0]: BucketState(*row[1:]) for row in _rows(_BUCKETS)})
    check_registry(known)


def check_registry(known: Registry) -> None:
    """Nothing but a change that is committed alters the registry."""
    _check(read_registry().values == known.values, "the run knows each change of the registry")


def check_connections(decided: Decided, known: Registry) -> None:
    """After a commit: a connection is decided once, and if it was approved, for one client."""
    rows = PermissionRequest.objects.exclude(public_jwk="").exclude(state=OPEN)
    for jwk, state in rows.values_list("public_jwk", "state"):
        before = decided.setdefault(key_name(json.loads(jwk)["kid"]), state)
        _check(before == state, f"what was {before} is not {state} afterwards")
    keys = [row.lookup for row in known.credentials if row.public_jwk]
    _check(len({*keys}) == len(keys), "the key of a connection is registered once")


def check_key(login: Login, decided: Decided) -> None:
    """No key has a token before its connection was approved."""
    if not isinstance(login.asked.credential, str):
        _check(decided.get(login.query.lookup) == APPROVED, "only a key that was approved logs in")


def adopt_counters(limits: Limits, known: Registry) -> None:
    """Counters after a change of their rows: as they were, or as those of a new client."""
    rows = _rows(_COUNTERS)
    clients = {row.id for row in known.system_users}
    _check({row[0] for row in rows} == clients, "each client has a counter, and nobody else")
    for client, *state, last_uses in rows:
        counter = CounterState(*state)
        if counter != limits.counters.get(client):
            _check(counter == NEVER, f"a new counter is empty: {client} {counter}")
            limits.counters[client], limits.last_uses[client] = counter, _moments(last_uses)
    for gone in set(limits.counters) - clients:
        del limits.counters[gone], limits.last_uses[gone]


def _moments(last_uses: str) -> LastUses:
    return {int(id_): datetime.fromisoformat(at) for id_, at in json.loads(last_uses).items()}


def _rows(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows: list[Any] = cursor.fetchall()
        return rows


def _check_same(right: dict[Any, Any], found: dict[Any, Any]) -> None:
    lines = [
        f"\n    {key}: {found.get(key)} instead of {right.get(key)}"
        for key in {**right, **found}
        if right.get(key) != found.get(key)
    ]
    _check(not lines, f"the tables hold what was stored:{''.join(lines[:5])}")


def _check(holds: bool, claim: str) -> None:
    if not holds:
        raise ClaimBroken(claim)
