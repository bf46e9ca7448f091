"""When what ends soon was last used: shows whether somebody will miss it.

All is read by keys or by one index, and bounded.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from identity.staff.templatetags.staff import moment_text
from taxpayers.models import (
    ClientSecret,
    GrantedPermission,
    Intermediary,
    RateLimitCounter,
    SystemUser,
)
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

LOOKBACK = timedelta(days=30)
MAX_LOGINS = 50
MAX_CLIENTS = 1_000


def last_uses(records: Sequence[Any], at: datetime) -> dict[Any, str]:
    """For each record, when it was last used, in words."""
    roles = [record for record in records if isinstance(record, Intermediary)]
    used_by_role = _of_intermediaries(roles)
    return {
        record: used_by_role[record] if isinstance(record, Intermediary) else _of(record, at)
        for record in records
    }


def _of(record: Any, at: datetime) -> str:
    match record:
        case ClientSecret():
            return _text(record.last_used_at)
        case SystemUser():
            usage: RateLimitCounter | None = getattr(record, "usage", None)
            return _text(usage.last_used_at if usage else None)
        case GrantedPermission():
            return last_use_of_permission(record, at)
        case _:
            raise TypeError(type(record))


def last_use_of_permission(row: GrantedPermission, at: datetime) -> str:
    """The latest login of the intermediary for the taxpayer, among the taxpayer's latest logins."""
    logins = LoginEvent.objects.filter(
        subject=str(row.taxpayer.identifier), pk__gte=first_id(at - LOOKBACK), reason=""
    )
    latest = list(logins.order_by("-pk").values_list("actor", "at")[:MAX_LOGINS])
    actor = str(row.intermediary.taxpayer.identifier)
    for found, moment in latest:
        if found == actor:
            return moment_text(moment)
    if len(latest) < MAX_LOGINS:
        text = ngettext("Not in {days} day", "Not in {days} days", LOOKBACK.days)
        return text.format(days=LOOKBACK.days)
    text = ngettext("Not in the last {count} login", "Not in the last {count} logins", MAX_LOGINS)
    return text.format(count=MAX_LOGINS)


def _of_intermediaries(roles: Sequence[Intermediary]) -> dict[Intermediary, str]:
    """The latest login of any of its system users."""
    owners = [role.taxpayer_id for role in roles]
    counters = RateLimitCounter.objects.filter(system_user__taxpayer__in=owners)
    latest: dict[int, datetime] = {}
    for counter in counters.select_related("system_user")[:MAX_CLIENTS]:
        if used_at := counter.last_used_at:
            owner = counter.system_user.taxpayer_id
            latest[owner] = max(used_at, latest.get(owner, used_at))
    return {role: _text(latest.get(role.taxpayer_id)) for role in roles}


def _text(moment: datetime | None) -> str:
    return moment_text(moment) if moment else _("Never")
