"""What is counted of each login once, after the fact: logins by the hour, first uses (contract 5).

The keys of events are in the order of time, so a mark says how far they are counted. Events younger
than SETTLED_AFTER are not counted yet: a node's clock may be behind, or a login in progress.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Min
from django.db.models.functions import TruncHour
from django.utils import timezone

from taxpayers.services import Author
from taxpayers.services.first_uses import record_first_uses
from tokens.login_events.partitions import first_id
from tokens.models import CountingMark, LoginCount, LoginEvent

_BY_HOUR, _FIRST_USES = 1, 2  # the marks
SETTLED_AFTER = timedelta(minutes=5)
FIRST_COUNT_COVERS = timedelta(days=31)  # the age of the first events counted, on a new service
_MIN_INTERVAL = timedelta(minutes=1)
_BATCH = 100_000  # events in one step: about a tenth of a second on PostgreSQL
_LARGE_BATCH = 500_000  # for a command, where no page waits


@dataclass(frozen=True, slots=True)
class CountingProgress:
    """Events below `next_id` are counted; `is_behind`: there are settled ones that are not."""

    next_id: UUID
    is_behind: bool


def count_settled(at: datetime, most: int = _BATCH) -> CountingProgress:
    """Counts at most `most` further events, unless all were counted less than a minute ago.

    Safe to call concurrently: while one process counts, the others return at once.
    """
    settled, due = first_id(at - SETTLED_AFTER), first_id(at - SETTLED_AFTER - _MIN_INTERVAL)
    reached = _mark(_BY_HOUR, at).next_id
    if reached < due:
        reached = _advance(_BY_HOUR, settled, most, _count) or reached
    return CountingProgress(reached, is_behind=reached < due)


def count_all(at: datetime, progress: Callable[[int], object] = int) -> int:
    """Counts all settled events; returns the number of steps, `progress` is called after each."""
    steps = 0
    while True:
        counted = count_settled(at, _LARGE_BATCH)
        steps += 1
        progress(1)
        if not counted.is_behind:
            return steps


def _mark(key: int, at: datetime) -> CountingMark:
    start = {"next_id": first_id(at - FIRST_COUNT_COVERS)}
    return CountingMark.objects.get_or_create(pk=key, defaults=start)[0]


def _advance(key: int, settled: UUID, most: int, work: Callable[[UUID, UUID], None]) -> UUID | None:
    """Does the work from a mark on, and returns where it is then; None: another process does it."""
    with transaction.atomic():
        mark = CountingMark.objects.select_for_update(skip_locked=True).filter(pk=key).first()
        if mark is None:
            return None
        if mark.next_id >= settled:
            return mark.next_id
        start = mark.next_id
        events = LoginEvent.objects.filter(pk__gte=start, pk__lt=settled).order_by("pk")
        ends = events.values_list("pk", flat=True)[most : most + 1]
        mark.next_id = next(iter(ends), settled)
        work(start, mark.next_id)
        mark.save(update_fields=["next_id"])
        return mark.next_id


def _count(start: UUID, end: UUID) -> None:
    """Adds the events from `start` to before `end`."""
    found = by_hour(start, end)
    stored = LoginCount.objects.filter(hour__in={hour for hour, _ in found})
    before = {(row.hour, row.reason): row.logins for row in stored}
    LoginCount.objects.bulk_create(
        (
            LoginCount(hour=hour, reason=reason, logins=before.get((hour, reason), 0) + logins)
            for (hour, reason), logins in found.items()
        ),
        update_conflicts=True,
        unique_fields=["hour", "reason"],
        update_fields=["logins"],
    )


def by_hour(start: UUID, end: UUID) -> dict[tuple[datetime, str], int]:
    """How many logins from `start` to before `end`, by hour of the authority's days and reason."""
    rows = (
        LoginEvent.objects.filter(pk__gte=start, pk__lt=end)
        .order_by()
        .values_list(TruncHour("at", tzinfo=timezone.get_default_timezone()), "reason")
        .annotate(Count("pk"))
    )
    return {(hour, reason): logins for hour, reason, logins in rows}


def note_first_uses(*, by: Author, at: datetime) -> int:
    """Record the first use of each permission that a settled login shows; how many there were."""
    settled, count = first_id(at - SETTLED_AFTER), 0

    def note(start: UUID, end: UUID) -> None:
        nonlocal count
        tokens = LoginEvent.objects.filter(pk__gte=start, pk__lt=end, reason="")
        pairs = tokens.exclude(actor="").order_by().values_list("subject", "actor")
        count += record_first_uses(pairs.annotate(Min("at")), by=by, at=at)

    _mark(_FIRST_USES, at)
    while (_advance(_FIRST_USES, settled, _BATCH, note) or settled) < settled:
        continue
    return count
