"""Clients that used up their logins of a minute, and so were told to wait (contract 1, Limits).

A throttled login leaves no event, by contract. What leaves one are the logins before it: whoever
has as many of them within a minute as its limit was refused every further one.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F

from taxpayers.models import SystemUser
from taxpayers.rules import Reason
from tokens.limits import WINDOW
from tokens.models import LoginEvent
from tokens.partitions import first_id

LOOKED_BACK = timedelta(minutes=10)
MOST_SHOWN = 10
_MOST_CLIENTS, _MOST_LOGINS = 50, 5_000
# These count against the caller's failures, not against the client's logins.
_NOT_COUNTED = (Reason.INVALID_CREDENTIALS, Reason.SECRET_EXPIRED, Reason.SECRET_REVOKED)


@dataclass(frozen=True, slots=True)
class ThrottledClient:
    """A system user, how many logins it had in LOOKED_BACK, and when its limit was reached last."""

    system_user: SystemUser
    logins: int
    reached_at: datetime


def throttled_clients(at: datetime) -> list[ThrottledClient]:
    """Those that reached their limit in the last ten minutes, the latest first."""
    counted = LoginEvent.objects.filter(
        pk__gte=first_id(at - LOOKED_BACK), secret_id__isnull=False, system_user__isnull=False
    ).exclude(reason__in=_NOT_COUNTED)
    busy = (
        counted.order_by()
        .annotate(limit=F("system_user__logins_per_minute"))
        .values("system_user_id", "limit")
        .annotate(logins=Count("pk"))
        .filter(limit__gt=0, logins__gte=F("limit"))
        .order_by("-logins")[:_MOST_CLIENTS]
    )
    limits = {row["system_user_id"]: row["limit"] for row in busy}
    if not limits:
        return []
    moments: dict[int | None, list[datetime]] = defaultdict(list)
    latest = counted.filter(system_user__in=limits).order_by("-pk")
    for client, moment in latest.values_list("system_user_id", "at")[:_MOST_LOGINS]:
        moments[client].append(moment)
    reached = {
        client: moment
        for client, found in moments.items()
        if client is not None
        for moment in _reached(found, limits[client])
    }
    rows = SystemUser.objects.select_related("taxpayer").filter(pk__in=reached)
    throttled = [ThrottledClient(row, len(moments[row.pk]), reached[row.pk]) for row in rows]
    return sorted(throttled, key=lambda client: client.reached_at, reverse=True)


def _reached(newest_first: list[datetime], limit: int) -> list[datetime]:
    """The last moment at which the limit was reached; none if it never was."""
    pairs = zip(newest_first, newest_first[limit - 1 :], strict=False)
    return [last for last, first in pairs if last - first < WINDOW][:1]
