"""How many records of each kind end within 7, 30 and 90 days."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from identity.staff.expiring.kinds import EndingKind
from identity.staff.framework.filters import EXPIRY_DAYS

MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class ExpiryCount:
    """How many expire within so many days; `is_capped`: there are more than `count`."""

    days: int
    count: int
    is_capped: bool


def expiring(kind: EndingKind, at: datetime) -> list[ExpiryCount]:
    """The counts of one kind, as *Ending soon* lists them."""
    return _expiring(kind.rows(), kind.end, at)


def _expiring(rows: "QuerySet[Any]", end: str, at: datetime) -> list[ExpiryCount]:
    # Reads the beginning of an index once: each shorter period is the start of a longer one.
    last = at + timedelta(days=EXPIRY_DAYS[-1])
    first = rows.filter(**{f"{end}__gte": at, f"{end}__lt": last}).order_by(end)
    counts = first.values(end)[: MAX_COUNTED + 1].aggregate(
        **{
            f"within_{days}": Count(end, filter=Q(**{f"{end}__lt": at + timedelta(days=days)}))
            for days in EXPIRY_DAYS
        }
    )
    return [
        ExpiryCount(days, min(counted, MAX_COUNTED), is_capped=counted > MAX_COUNTED)
        for days in EXPIRY_DAYS
        for counted in [counts[f"within_{days}"]]
    ]
