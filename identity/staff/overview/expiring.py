"""What ends within 7, 30 and 90 days: secrets, system users, permissions. Counted to a bound."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from taxpayers.models import ClientSecret, GrantedPermission, SystemUser

WITHIN_DAYS = (7, 30, 90)
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Ending:
    """How many end within so many days; `is_capped`: at least so many."""

    days: int
    count: int
    is_capped: bool


def ending_secrets(at: datetime) -> list[Ending]:
    """Live client secrets."""
    return _ending(ClientSecret.objects.filter(slot__isnull=False), "expires_at", at)


def ending_system_users(at: datetime) -> list[Ending]:
    """System users with an end, blocked ones as well: so counts the list behind the figure."""
    return _ending(SystemUser.objects.all(), "expires_at", at)


def ending_permissions(at: datetime) -> list[Ending]:
    """Permissions that are not revoked."""
    return _ending(GrantedPermission.objects.filter(revoked_at=None), "valid_until", at)


def _ending(rows: "QuerySet[Any]", end: str, at: datetime) -> list[Ending]:
    # The first ones in the order of an index; each shorter period is the beginning of a longer.
    last = at + timedelta(days=WITHIN_DAYS[-1])
    first = rows.filter(**{f"{end}__gte": at, f"{end}__lt": last}).order_by(end)
    counts = first.values(end)[: MOST_COUNTED + 1].aggregate(
        **{
            f"within_{days}": Count(end, filter=Q(**{f"{end}__lt": at + timedelta(days=days)}))
            for days in WITHIN_DAYS
        }
    )
    return [
        Ending(days, min(found, MOST_COUNTED), is_capped=found > MOST_COUNTED)
        for days in WITHIN_DAYS
        for found in [counts[f"within_{days}"]]
    ]
