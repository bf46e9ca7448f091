"""The first page: asks for every figure once, and says which list stands behind it.

Nobody sees more here than on the lists themselves: each part asks for their permission.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from identity.staff.logins.reasons import staff_text_of
from identity.staff.overview.charts import chart_of
from identity.staff.overview.expiring import (
    Ending,
    ending_permissions,
    ending_secrets,
    ending_system_users,
)
from identity.staff.overview.failing import failing_clients
from identity.staff.overview.throttled import throttled_clients
from identity.staff.overview.traffic import Period, traffic
from taxpayers.models import SystemUser
from tokens.login_events.hourly_counts import count_settled
from tokens.models import SigningKey

OLD_KEY = timedelta(days=90)
_LOGINS = "tokens.loginevent"


@dataclass(frozen=True, slots=True)
class Line:
    """What ends, each figure with the list behind it."""

    title: str
    figures: list[tuple[Ending, str]]


def today(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds to the admin's first page what this person may see (UNFOLD, DASHBOARD_CALLBACK)."""
    at = timezone.now()
    title = _("Today")
    context |= {"at": at, "title": title, "crumbs": [(title, "")]}
    context["lines"] = list(_lines(request, at))
    if _may_view(request, _LOGINS):
        context |= _logins(at)
    if _may_view(request, "tokens.signingkey"):
        context |= _signing_key(at)
    return context


def _may_view(request: HttpRequest, model: str) -> bool:
    app, name = model.split(".")
    return request.user.has_perm(f"{app}.view_{name}")


def _list(model: str, **filters: Any) -> str:
    query = f"?{urlencode(filters)}" if filters else ""
    return reverse(f"admin:{model.replace('.', '_')}_changelist") + query


def _logins(at: datetime) -> dict[str, Any]:
    now = traffic(at, count_settled(at))
    failing = failing_clients(at)
    return {
        "traffic": now,
        "panels": [
            _panel(now.hours, "1", _("Last 24 hours"), _("Hour"), "H:i"),
            _panel(now.days, "30", _("Last 30 days"), _("Day"), "j M"),
        ],
        "reasons": [
            {
                "words": staff_text_of(row.reason),
                "figures": [
                    _reason_figure(_("24 hours"), row.in_hours, "1", row.reason),
                    _reason_figure(_("30 days"), row.in_days, "30", row.reason),
                ],
            }
            for row in now.top_reasons
        ],
        "failing": failing,
        "refused_url": _list(_LOGINS, period="1", reason="refused"),
        "failing_clients": [
            (client, staff_text_of(client.reason).what, _logins_of(client.system_user))
            for client in failing.clients
        ],
        "throttled_clients": [
            (client, _logins_of(client.system_user)) for client in throttled_clients(at)
        ],
    }


def _reason_figure(title: str, count: int, period: str, reason: str) -> dict[str, Any]:
    url = _list(_LOGINS, period=period, reason=reason)
    return {"title": title, "count": count, "url": url}


def _panel(period: Period, name: str, title: str, column: str, form: str) -> dict[str, Any]:
    """A chart with its figures; each figure has the list behind it."""

    def label(moment: datetime) -> str:
        return formats.date_format(timezone.localtime(moment), form)

    return {
        "id": f"logins-{name}",
        "title": title,
        "column": column,
        "chart": chart_of(period.bars, label),
        "figures": [
            (_("Logins"), period.total, _list(_LOGINS, period=name)),
            (_("Token issued"), period.issued, _list(_LOGINS, period=name, reason="issued")),
            (_("Refused"), period.refused, _list(_LOGINS, period=name, reason="refused")),
        ],
    }


def _logins_of(system_user: SystemUser) -> str:
    return _list(_LOGINS, q=system_user.client_id)


def _lines(request: HttpRequest, at: datetime) -> Iterator[Line]:
    """What ends soon. A secret has no list of its own: its system user is what can be mended."""
    users = "taxpayers.systemuser"
    if _may_view(request, "taxpayers.clientsecret") and _may_view(request, users):
        yield _line(_("Secrets"), ending_secrets(at), users, "secret")
    if _may_view(request, users):
        yield _line(_("System users"), ending_system_users(at), users, "state")
    if _may_view(request, "taxpayers.grantedpermission"):
        granted = "taxpayers.grantedpermission"
        yield _line(_("Permissions"), ending_permissions(at), granted, "state")


def _line(title: str, endings: list[Ending], model: str, parameter: str) -> Line:
    return Line(title, [(ending, _list(model, **{parameter: ending.days})) for ending in endings])


def _signing_key(at: datetime) -> dict[str, Any]:
    """The key that signs now. It is read without its private part."""
    signing = SigningKey.objects.filter(signs_from__lte=at).defer("private_key").first()
    age = at - signing.signs_from if signing else timedelta()
    return {
        "signing_key": signing,
        "signing_key_days": age.days,
        "signing_key_is_old": age >= OLD_KEY,
        "signing_keys_url": _list("tokens.signingkey"),
    }
