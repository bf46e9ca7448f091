"""Clients that reached their limit of logins per minute (contract 1, Limits).

A throttled login is not recorded as an event, by contract. The logins before it are: a client
that has as many of them within a minute as its limit allows was refused every further one.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from taxpayers.models import SystemUser
from taxpayers.sandbox.users import sandbox_users
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import WINDOW
from tokens.refusals.table import REFUSALS

LOOKBACK = timedelta(minutes=10)
MAX_SHOWN = 10
_MAX_BUSY, _MAX_CLIENTS, _MAX_LOGINS = 500, 50, 5_000
# These count against the caller's failures, not against the client's logins.
_NOT_COUNTED = [reason for reason, refusal in REFUSALS.items() if refusal.counts_as_failure]


@dataclass(frozen=True, slots=True)
class ThrottledClient:
    """A system user, how many logins it had in LOOKBACK, and when its limit was reached last."""

    system_user: SystemUser
    logins: int
    reached_at: datetime


def throttled_clients(at: datetime) -> list[ThrottledClient]:
    """Clients that reached their limit in the last ten minutes, the latest first."""
    counted = LoginEvent.objects.filter(
        pk__gte=first_id(at - LOOKBACK),
        pk__lt=first_id(at + LOOKBACK),  # reads no partition of future months
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
    beyond = [user for user in users if busy[user.pk] >= user.logins_per_minute][:_MAX_CLIENTS]
    if not beyond:
        return []
    moments: dict[int | None, list[datetime]] = defaultdict(list)
    latest = counted.filter(client_id__in=[user.client_id for user in beyond]).order_by("-pk")
    for client, moment in latest.values_list("system_user_id", "at")[:_MAX_LOGINS]:
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
