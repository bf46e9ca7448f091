"""When a permission was first used, for the taxpayer and for webhooks."""

from collections.abc import Iterable
from datetime import datetime
from typing import Unpack

from django.db import transaction
from django.db.models import Q

from taxpayers import actions
from taxpayers.models import GrantedPermission
from taxpayers.services.history import Asked, ChangeContext, update_and_record

_BATCH = 200  # conditions in one statement


@transaction.atomic
def record_first_uses(pairs: Iterable[tuple[str, str, datetime]], **asked: Unpack[Asked]) -> int:
    """Of these taxpayers and intermediaries, each with the moment of a login; how many.

    A permission that was in force at that moment was used: a login carries the codes of all.
    """
    context, count = ChangeContext(actions.USE_PERMISSION, **asked), 0
    listed = list(pairs)
    for start in range(0, len(listed), _BATCH):
        some = listed[start : start + _BATCH]
        condition = Q(pk__in=())
        for subject, actor, moment in some:
            (tin, _, rob), (agent, _, agent_rob) = subject.partition(":"), actor.partition(":")
            condition |= Q(
                Q(valid_until=None) | Q(valid_until__gte=moment),
                Q(revoked_at=None) | Q(revoked_at__gt=moment),
                taxpayer__tin=tin,
                taxpayer__rob=rob,
                intermediary__taxpayer__tin=agent,
                intermediary__taxpayer__rob=agent_rob,
                valid_from__lte=moment,
            )
        moments = {(subject, actor): moment for subject, actor, moment in some}
        rows = GrantedPermission.objects.filter(condition, first_used_at=None)
        for row in rows.select_related("taxpayer", "intermediary__taxpayer").order_by("pk"):
            pair = str(row.taxpayer.identifier), str(row.intermediary.taxpayer.identifier)
            update_and_record(row, context, first_used_at=moments[pair])
            count += 1
    return count
