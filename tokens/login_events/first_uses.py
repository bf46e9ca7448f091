"""Which permissions were used for the first time: each login is looked at once, after the fact.

As the hourly counts: a mark says how far, and events that are too young wait.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Min, QuerySet

from taxpayers.services import Author
from taxpayers.services.first_uses import record_first_uses
from tokens.login_events.hourly_counts import FIRST_COUNT_COVERS, SETTLED_AFTER
from tokens.login_events.partitions import first_id
from tokens.models import CountingMark, LoginEvent

_MARK = 2  # 1 is that of the hourly counts
_BATCH = 100_000  # events in one step


def note_first_uses(*, by: Author, at: datetime) -> int:
    """Record the first use of each permission that a settled login shows; how many there were.

    Safe to call concurrently: while one process does it, the others return at once.
    """
    settled, count, is_behind = first_id(at - SETTLED_AFTER), 0, True
    start = {"next_id": first_id(at - FIRST_COUNT_COVERS)}
    CountingMark.objects.get_or_create(pk=_MARK, defaults=start)
    while is_behind:
        with transaction.atomic():
            mark = CountingMark.objects.select_for_update(skip_locked=True).filter(pk=_MARK).first()
            if mark is None or mark.next_id >= settled:
                return count
            events = LoginEvent.objects.filter(pk__gte=mark.next_id, pk__lt=settled)
            beyond = events.order_by("pk").values_list("pk", flat=True)[_BATCH : _BATCH + 1]
            end = next(iter(beyond), settled)
            count += record_first_uses(_pairs(events.filter(pk__lt=end)), by=by, at=at)
            mark.next_id = end
            mark.save(update_fields=["next_id"])
            is_behind = end < settled
    return count


def _pairs(events: "QuerySet[LoginEvent]") -> Iterable[tuple[str, str, datetime]]:
    """Each taxpayer and intermediary with a token, and the first moment."""
    granted = events.filter(reason="").exclude(actor="").order_by()
    return granted.values_list("subject", "actor").annotate(Min("at"))
