"""Takes indexes of the status lists on SQLite, in the transaction of its one writer."""

import secrets
from datetime import UTC, datetime

from django.db.models import Max

from taxpayers.facts.values import StatusFacts
from taxpayers.models import EndedStatusIndex, RateLimitCounter, StatusChange, StatusIndex
from tokens.login_events.events import TakeStatusIndex
from tokens.status_lists.reuse import REUSED_AFTER


def take_status_index(call: TakeStatusIndex) -> StatusFacts | None:
    """As the statement of PostgreSQL."""
    now = datetime.now(UTC)
    key = dict(zip(TakeStatusIndex._fields[:5], call[:5], strict=True))
    is_confirmed = RateLimitCounter.objects.filter(
        pk=call.system_user_id, epoch=call.epoch
    ).exists()
    row = StatusIndex.objects.filter(**key).first()
    if row is None:
        check_at = call.check_at if is_confirmed else now
        row = StatusIndex(index=_unused(now), check_at=check_at, **key)
    elif not is_confirmed:
        return None
    row.scopes |= dict.fromkeys(call.scopes, 1)
    row.permissions |= dict.fromkeys(call.permissions, 1)
    row.check_at = min((at for at in (row.check_at, call.check_at) if at), default=None)
    row.version = secrets.randbits(63)
    row.save()
    names = (tuple(sorted(each)) for each in (row.scopes, row.permissions))
    return StatusFacts(row.index, row.version, *names)


def _unused(now: datetime) -> int:
    ended = EndedStatusIndex.objects.filter(ended_at__lt=now - REUSED_AFTER)
    oldest = ended.order_by("number").first()
    if oldest is not None:
        oldest.delete()
        return oldest.index
    highest = [
        rows.aggregate(highest=Max(column))["highest"]
        for rows, column in (
            (StatusIndex.objects, "index"),
            (EndedStatusIndex.objects, "index"),
            (StatusChange.objects, "ended_index"),
        )
    ]
    return max((index for index in highest if index is not None), default=-1) + 1
