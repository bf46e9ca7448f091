"""Logins without a record: callers that a limit denied (contract 1, Limits), and references."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext, gettext_lazy as _

from identity.staff.logins.reasons import caller_texts
from taxpayers.models import SystemUser
from taxpayers.moments import moment_text
from tokens.answers.description import TOO_MANY
from tokens.login_events.reference import CALLER_TEXTS, explain_missing, made_at, reference_in
from tokens.models import LoginEvent, ThrottledCaller
from tokens.rate_limits.backoff import counted_address
from tokens.rate_limits.throttle import ThrottleCause
from tokens.refusals.table import REFUSALS, ProtocolReason

LATELY = timedelta(hours=24)
MAX_SHOWN = 5
_MAX_ROWS = 1_000

_WHAT: Mapping[str, Any] = {
    ThrottleCause.LOGINS: _("More logins per minute than its limit"),
    ThrottleCause.FAILURES: _("Too many failed logins"),
    ThrottleCause.REJECTIONS: _("Too many requests that cannot be read"),
}


@dataclass(frozen=True, slots=True)
class Throttled:
    row: ThrottledCaller  # the latest: a caller has one for each hour
    system_user: SystemUser | None
    hours: int = 1

    @property
    def what(self) -> Any:
        return _WHAT[self.row.cause]

    @property
    def advice(self) -> str:
        """What its ERP system was told, in English."""
        own = REFUSALS[ProtocolReason.RATE_LIMITED].text
        return TOO_MANY.get(ThrottleCause(self.row.cause), own)


def throttled_lately(at: datetime) -> list[Throttled]:
    """Of the last 24 hours, the latest first."""
    return _shown(ThrottledCaller.objects.filter(hour__gte=at - LATELY).order_by("-hour", "-at"))


def throttled_for(term: str) -> list[Throttled]:
    """Those with this client ID or address."""
    rows = ThrottledCaller.objects.filter(client_id=term)
    with suppress(ValueError):  # no address
        rows |= ThrottledCaller.objects.filter(source=counted_address(term))
    return _shown(rows.order_by("-hour", "-at")) if term else []


def throttled_with(reference: UUID) -> list[Throttled]:
    """The one with this reference; otherwise all of its hour, one of which it may be."""
    if (made := made_at(reference)) is None:
        return []
    hour = made.replace(minute=0, second=0, microsecond=0)
    found = _shown(ThrottledCaller.objects.filter(hour=hour).order_by("-at"))
    return [one for one in found if one.row.reference == reference] or found


def _shown(rows: "QuerySet[ThrottledCaller]") -> list[Throttled]:
    """At most MAX_SHOWN, each once."""
    callers: dict[tuple[str, str, str], list[ThrottledCaller]] = {}
    for row in rows[:_MAX_ROWS]:
        callers.setdefault((row.cause, row.client_id, row.source), []).append(row)
    shown = list(callers.values())[:MAX_SHOWN]
    users = SystemUser.objects.filter(client_id__in=[found[0].client_id for found in shown])
    named = {user.client_id: user for user in users.select_related("taxpayer")}
    return [Throttled(found[0], named.get(found[0].client_id), len(found)) for found in shown]


_NOT_RECORDED = "staff/logins/not_recorded.html"


def not_found_context(term: str, at: datetime) -> dict[str, Any]:
    """What a list without a login shows; nothing unless the term has a reference."""
    reference = reference_in(term)
    if reference is None:
        return {}
    event = LoginEvent.objects.filter(pk=reference).first()
    if event is not None:
        return {"list_notice": _NOT_RECORDED, "hidden_login": event}
    throttled = throttled_with(reference)
    notice: dict[str, Any] = {"list_notice": _NOT_RECORDED, "throttled": throttled}
    if throttled and throttled[0].row.reference == reference:
        one = throttled[0]
        text = gettext("A limit refused this login: {what}.").format(what=one.what)
        return notice | {"missing": text, "callers": caller_texts(lambda: gettext(one.advice))}
    missing = explain_missing(reference, at)
    explanation = gettext(missing.cause.value).format(
        made=missing.made_at and moment_text(missing.made_at),
        oldest=missing.oldest_at and moment_text(missing.oldest_at),
    )
    callers = caller_texts(lambda: gettext(CALLER_TEXTS[missing.cause]))
    return notice | {"missing": explanation, "callers": callers}
