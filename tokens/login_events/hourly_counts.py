"""Logins by the hour: each event is counted once, and no login pays for it (contract 5).

The keys of events are in the order of time, so a mark says how far they are counted. What is
younger than SETTLED_AFTER is left alone: a node's clock may be behind, or a login under way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.db.models.functions import TruncHour
from django.utils import timezone

from tokens.login_events.partitions import first_id
from tokens.models import CountingMark, LoginCount, LoginEvent

SETTLED_AFTER = timedelta(minutes=5)
COUNTED_BACK = timedelta(days=31)  # where a service begins that has never counted
_WORTH_COUNTING = timedelta(minutes=1)
_MOST = 100_000  # events in one step: about a tenth of a second on PostgreSQL
_MOST_AT_NIGHT = 500_000  # nobody waits


@dataclass(frozen=True, slots=True)
class CountingProgress:
    """Every event below `next_id` is in a LoginCount; `is_behind`: and settled ones are not."""

    next_id: UUID
    is_behind: bool


def count_settled(at: datetime, most: int = _MOST) -> CountingProgress:
    """Counts at most `most` further events, if anybody has to: safe for many at once.

    Whoever comes while another one counts goes on without.
    """
    settled, worth_it = first_id(at - SETTLED_AFTER), first_id(at - SETTLED_AFTER - _WORTH_COUNTING)
    mark = CountingMark.objects.first() or _begin(at)
    if mark.next_id >= worth_it:
        return CountingProgress(mark.next_id, is_behind=False)
    with transaction.atomic():
        locked = CountingMark.objects.select_for_update(skip_locked=True).filter(pk=mark.pk).first()
        if locked is not None and locked.next_id < settled:
            locked.next_id = _count(locked.next_id, settled, most)
            locked.save(update_fields=["next_id"])
    reached = locked.next_id if locked else mark.next_id
    return CountingProgress(reached, is_behind=reached < worth_it)


def count_all(at: datetime, progress: Callable[[int], object] = int) -> int:
    """Counts until nothing settled is left; the number of steps. `progress` is told each."""
    steps = 0
    while True:
        counted = count_settled(at, _MOST_AT_NIGHT)
        steps += 1
        progress(1)
        if not counted.is_behind:
            return steps


def _begin(at: datetime) -> CountingMark:
    begun = {"next_id": first_id(at - COUNTED_BACK)}
    return CountingMark.objects.get_or_create(pk=1, defaults=begun)[0]


def _count(start: UUID, end: UUID, most: int) -> UUID:
    """Adds the events from `start` to before `end`, or the first of them; where it stopped."""
    events = LoginEvent.objects.filter(pk__gte=start, pk__lt=end).order_by()
    beyond = events.order_by("pk").values_list("pk", flat=True)[most : most + 1]
    end = next(iter(beyond), end)
    found = by_hour(start, end)
    kept = LoginCount.objects.filter(hour__in={hour for hour, _ in found})
    before = {(row.hour, row.reason): row.logins for row in kept}
    LoginCount.objects.bulk_create(
        (
            LoginCount(hour=hour, reason=reason, logins=before.get((hour, reason), 0) + logins)
            for (hour, reason), logins in found.items()
        ),
        update_conflicts=True,
        unique_fields=["hour", "reason"],
        update_fields=["logins"],
    )
    return end


def by_hour(start: UUID, end: UUID) -> dict[tuple[datetime, str], int]:
    """How many logins from `start` to before `end`, by hour and reason, read from the events.

    Hours are those of the authority's time zone, so that they make up its days.
    """
    rows = (
        LoginEvent.objects.filter(pk__gte=start, pk__lt=end)
        .order_by()
        .values_list(TruncHour("at", tzinfo=timezone.get_default_timezone()), "reason")
        .annotate(Count("pk"))
    )
    return {(hour, reason): logins for hour, reason, logins in rows}
