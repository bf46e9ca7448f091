"""Clients in trouble: those that started to fail, and those that reached their limit (contract 1).

A client started to fail if it got tokens in the last days, and now only refusals. A throttled login
is not recorded as an event, by contract. The logins before it are: a client that has as many of
them within a minute as its limit allows was refused every further one. Both read a limited number
of the latest logins, so their cost is limited.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, DateTimeField
from django.db.models.expressions import RawSQL

from taxpayers.models import SystemUser
from taxpayers.sandbox.users import sandbox_users
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import WINDOW
from tokens.refusals.table import REFUSALS

LOOKBACK = timedelta(hours=24)
STARTED_WITHIN = timedelta(days=7)  # a client that fails for longer is not new
MIN_REFUSALS = 2  # one may be a mistake
MAX_SHOWN = 10
_MAX_REFUSALS, _MAX_CLIENTS, _MAX_LOGINS = 5_000, 30, 1_000

# Reads the index of a client's logins, the newest first. The limit is for a client that retries
# all the time: it may have failed thousands of times since its last token.
_LAST_TOKEN = f"""(
    SELECT max(at) FROM (
        SELECT at, reason FROM login_events
        WHERE login_events.client_id = system_users.client_id
        ORDER BY login_events.id DESC LIMIT {_MAX_LOGINS}
    ) AS latest
    WHERE reason = ''
)"""  # noqa: S608 - put together from a constant


@dataclass(frozen=True, slots=True)
class FailingClient:
    """`last_token_at` is None if none of its latest logins got a token, and there are very many.

    `refusals` are those since `failing_since`: since the last token, of the last 24 hours at most.
    `reason` is why the latest of them was refused.
    """

    system_user: SystemUser
    last_token_at: datetime | None
    failing_since: datetime
    refusals: int
    reason: str


@dataclass(frozen=True, slots=True)
class FailingClients:
    """The latest last token comes first; `has_more`: not all are in `clients`."""

    clients: list[FailingClient]
    has_more: bool


_Refusals = list[tuple[datetime, str]]  # the newest first


def failing_clients(at: datetime) -> FailingClients:
    """Clients with MIN_REFUSALS in the last 24 hours, all of them after their last token."""
    refusals: dict[int, _Refusals] = defaultdict(list)
    latest = (
        LoginEvent.objects.filter(
            pk__gte=first_id(at - LOOKBACK),
            pk__lt=first_id(at + LOOKBACK),  # reads no partition of future months
            system_user__isnull=False,
        )
        .exclude(reason="")
        .exclude(system_user__in=sandbox_users())
        .order_by("-pk")
        .values_list("system_user_id", "at", "reason")
    )
    for system_user_id, moment, reason in latest[:_MAX_REFUSALS]:
        assert system_user_id is not None  # noqa: S101 - filtered
        refusals[system_user_id].append((moment, reason))
    often = {pk: found for pk, found in refusals.items() if len(found) >= MIN_REFUSALS}
    worst = sorted(often, key=lambda pk: -len(often[pk]))[:_MAX_CLIENTS]
    candidates = (
        SystemUser.objects.filter(pk__in=worst)
        .select_related("taxpayer")
        .annotate(last_token_at=RawSQL(_LAST_TOKEN, (), output_field=DateTimeField()))  # noqa: S611 - a constant
    )
    failing = [client for row in candidates for client in _failing(row, often[row.pk], at)]
    failing.sort(key=lambda client: client.last_token_at or at - LOOKBACK, reverse=True)
    return FailingClients(failing[:MAX_SHOWN], has_more=len(failing) > MAX_SHOWN)


def _failing(row: SystemUser, found: _Refusals, at: datetime) -> list[FailingClient]:
    last: datetime | None = row.last_token_at  # type: ignore[attr-defined]  # annotated
    if last is None and len(found) < _MAX_LOGINS:
        return []  # it never had a token, so nothing has changed
    if last is not None and last < at - STARTED_WITHIN:
        return []
    refusals = sum(last is None or moment > last for moment, _reason in found)
    if refusals < MIN_REFUSALS:
        return []
    since = max(last or at - LOOKBACK, at - LOOKBACK)
    return [FailingClient(row, last, since, refusals, reason=found[0][1])]


THROTTLED_WITHIN = timedelta(minutes=10)
_MAX_BUSY, _MAX_LIMITED, _MAX_COUNTED_LOGINS = 500, 50, 5_000
# These count against the caller's failures, not against the client's logins.
_NOT_COUNTED = [reason for reason, refusal in REFUSALS.items() if refusal.counts_as_failure]


@dataclass(frozen=True, slots=True)
class ThrottledClient:
    """A system user, its logins in THROTTLED_WITHIN, and when its limit was reached last."""

    system_user: SystemUser
    logins: int
    reached_at: datetime


def throttled_clients(at: datetime) -> list[ThrottledClient]:
    """Clients that reached their limit in the last ten minutes, the latest first."""
    counted = LoginEvent.objects.filter(
        pk__gte=first_id(at - THROTTLED_WITHIN),
        pk__lt=first_id(at + THROTTLED_WITHIN),  # reads no partition of future months
        secret_id__isnull=False,
        system_user__isnull=False,
    ).exclude(reason__in=_NOT_COUNTED)
    busy = dict(
        counted.order_by()
        .values_list("system_user_id")
        .annotate(logins=Count("pk"))
        .filter(logins__gt=1)
        .order_by("-logins")[:_MAX_BUSY]
    )
    if not busy:
        return []
    # Not a join above: that would read all system users.
    users = (
        SystemUser.objects.filter(pk__in=busy, logins_per_minute__gt=0)
        .exclude(pk__in=sandbox_users())  # one of them is there to reach its limit
        .select_related("taxpayer")
    )
    beyond = [user for user in users if busy[user.pk] >= user.logins_per_minute][:_MAX_LIMITED]
    if not beyond:
        return []
    moments: dict[int | None, list[datetime]] = defaultdict(list)
    latest = counted.filter(client_id__in=[user.client_id for user in beyond]).order_by("-pk")
    for client, moment in latest.values_list("system_user_id", "at")[:_MAX_COUNTED_LOGINS]:
        moments[client].append(moment)
    throttled = [
        ThrottledClient(user, busy[user.pk], reached_at)
        for user in beyond
        for reached_at in _reached(moments[user.pk], user.logins_per_minute)
    ]
    throttled.sort(key=lambda client: client.reached_at, reverse=True)
    return throttled[:MAX_SHOWN]


def _reached(newest_first: list[datetime], limit: int) -> list[datetime]:
    """The last moment at which the limit was reached; none if it never was."""
    pairs = zip(newest_first, newest_first[limit - 1 :], strict=False)
    return [last for last, first in pairs if last - first < WINDOW][:1]
