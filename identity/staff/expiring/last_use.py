"""When what ends soon was last used: shows whether it is still needed.

All is read by keys or by one index, and bounded.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from identity.staff.display import moment_text
from taxpayers.models import (
    Credential,
    GrantedPermission,
    Intermediary,
    RateLimitCounter,
    SystemUser,
)
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent, ProtectedApiSecret

LOOKBACK = timedelta(days=30)
MAX_LOGINS = 50
MAX_CLIENTS = 1_000


# One statement for all of them: to plan it takes longer than to execute it.
_LATEST_LOGINS = """
SELECT asked.subject, found.actor, found.at
FROM unnest(%s::text[]) AS asked (subject) CROSS JOIN LATERAL (
    SELECT actor, at FROM login_events
    WHERE subject = asked.subject AND id >= %s AND reason = ''
    ORDER BY id DESC LIMIT %s) AS found"""

Login = tuple[str, datetime]  # who acted, and when


def last_uses(records: Sequence[Any], at: datetime) -> dict[Any, str]:
    """For each record, when it was last used, in words."""
    roles = [record for record in records if isinstance(record, Intermediary)]
    permissions = [record for record in records if isinstance(record, GrantedPermission)]
    used: dict[Any, str] = {**_of_intermediaries(roles), **_of_permissions(permissions, at)}
    return {record: used[record] if record in used else _of(record) for record in records}


def _of(record: Any) -> str:
    match record:
        case Credential() | SystemUser():
            return _text(record.last_used_at)
        case ProtectedApiSecret():  # before it was recorded it may have been used as well
            used_at = record.last_used_at
            return moment_text(used_at) if used_at else _("No use recorded")
        case _:
            raise TypeError(type(record))


def last_use_of_permission(row: GrantedPermission, at: datetime) -> str:
    """The latest login of the intermediary for the taxpayer, among the taxpayer's latest logins."""
    return _of_permissions([row], at)[row]


def _of_permissions(
    rows: Sequence[GrantedPermission], at: datetime
) -> dict[GrantedPermission, str]:
    subjects = {row: str(row.taxpayer.identifier) for row in rows}
    latest = _latest_logins(sorted(set(subjects.values())), at)
    return {row: _of_permission(row, latest.get(subject, [])) for row, subject in subjects.items()}


def _of_permission(row: GrantedPermission, latest: Sequence[Login]) -> str:
    actor = str(row.intermediary.taxpayer.identifier)
    for found, moment in latest:
        if found == actor:
            return moment_text(moment)
    if len(latest) < MAX_LOGINS:
        text = ngettext("Not in {days} day", "Not in {days} days", LOOKBACK.days)
        return text.format(days=LOOKBACK.days)
    text = ngettext("Not in the last {count} login", "Not in the last {count} logins", MAX_LOGINS)
    return text.format(count=MAX_LOGINS)


def _latest_logins(subjects: list[str], at: datetime) -> dict[str, list[Login]]:
    """The latest logins with a token for each of these taxpayers, the newest first."""
    since = first_id(at - LOOKBACK)
    found: dict[str, list[Login]] = {}
    if not subjects:
        return found
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_LATEST_LOGINS, [subjects, since, MAX_LOGINS])
            for subject, actor, moment in cursor:
                found.setdefault(subject, []).append((actor, moment))
        return found
    for subject in subjects:
        logins = LoginEvent.objects.filter(subject=subject, pk__gte=since, reason="")
        found[subject] = list(logins.order_by("-pk").values_list("actor", "at")[:MAX_LOGINS])
    return found


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
