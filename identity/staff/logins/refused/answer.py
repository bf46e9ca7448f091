"""The answer about a refused login: what to tell the caller, what cures it, what changed since."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext

from identity.staff.framework.badges import (
    Badge,
    badge_of_intermediary,
    badge_of_permission,
    badge_of_system_user,
    badge_of_taxpayer,
)
from identity.staff.logins.reasons import (
    CallerText,
    StaffText,
    caller_texts,
    kind_of_login,
    staff_text_of,
)
from identity.staff.logins.refused.cures import OfferedCures, offered_cures
from identity.staff.logins.refused.involved import (
    Involved,
    KnownClient,
    known_client,
    latest_logins,
)
from identity.staff.logins.refused.present import Present, changes_since, present_of
from taxpayers.models import Change
from tokens.answers.description import describe
from tokens.explanation import refusal_of
from tokens.refusals.table import REFUSALS


@dataclass(frozen=True, slots=True)
class RefusalSummary:
    """What the page of a refused login says before the request and its checks.

    `callers`: what to say to the caller; `received`: what its ERP system got, if not the same.
    `now`: why it would be refused now; None if it would not, or if unknown. `is_same`: for the
    same reason as then.
    """

    callers: list[CallerText]
    received: str
    present: Present
    now: StaffText | None
    is_same: bool
    changes: list[tuple[Any, Change]]
    cures: OfferedCures
    client: KnownClient | None


def answer_to(request: HttpRequest, involved: Involved, at: datetime) -> RefusalSummary:
    """The answer about this refused login, for this reader."""
    event = involved.event
    refused = refusal_of(event)
    assert refused is not None  # noqa: S101 - the caller has a refused login
    latest = latest_logins(event.client_id)
    present = present_of(involved, latest, at)
    reason = present.refused.reason if present.refused else event.reason
    return RefusalSummary(
        callers=caller_texts(lambda: describe(refused, gettext, is_spoken=True)),
        received=describe(refused) if REFUSALS[refused.reason].spoken else "",
        present=present,
        now=staff_text_of(reason, kind_of_login(event, involved.secret))
        if present.refused
        else None,
        is_same=reason == event.reason,
        changes=changes_since(request, involved),
        cures=OfferedCures() if present.is_cured else offered_cures(request, reason, involved, at),
        client=known_client(involved, latest, at),
    )


def records_of(involved: Involved, at: datetime) -> list[tuple[str, Any, Badge]]:
    """The records of the login with their state now: title, record, state."""
    user, own = involved.system_user, involved.own_taxpayer
    found: list[tuple[str, Any, Badge]] = []
    if user is not None and own is not None:
        found.append((gettext("System user"), user, badge_of_system_user(user, at)))
        found.append((gettext("Taxpayer"), own, badge_of_taxpayer(own)))
    if involved.role is not None:
        state = badge_of_intermediary(involved.role, at)
        found.append((gettext("Intermediary"), involved.role, state))
    if involved.represented is not None:
        state = badge_of_taxpayer(involved.represented)
        found.append((gettext("Represented taxpayer"), involved.represented, state))
    if involved.permission is not None:
        state = badge_of_permission(involved.permission, at)
        found.append((gettext("Newest permission"), involved.permission, state))
    return found
