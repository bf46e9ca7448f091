"""The first page: each number is a link to the list that it counts.

Every panel needs the permission of the list that it links to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.staff.expiring.kinds import KINDS, EndingKind
from identity.staff.framework.filters import EXPIRY_DAYS
from identity.staff.framework.record_pages import Text
from identity.staff.logins.reasons import staff_text_of
from identity.staff.models import StaffAccount
from identity.staff.overview.charts import chart_of
from identity.staff.overview.expiring import ExpiryCount, expiring
from identity.staff.overview.failing import FailingClient, failing_clients
from identity.staff.overview.throttled import LOOKBACK as THROTTLED_LOOKBACK
from identity.staff.overview.throttled import ThrottledClient, throttled_clients
from identity.staff.overview.traffic import traffic
from identity.staff.overview.week import week_of
from tokens.login_events.hourly_counts import count_settled
from tokens.models import SigningKey

OLD_KEY = timedelta(days=90)
_LOGINS = "tokens.loginevent"


@dataclass(frozen=True, slots=True)
class ExpiryRow:
    """How many of one kind of record expire soon; each count with the URL of the list."""

    title: Text
    counts: list[tuple[ExpiryCount, str]]


def today(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds the panels that this person may see (DASHBOARD_CALLBACK in UNFOLD)."""
    at = timezone.now()
    title = _("Today")
    context |= {"at": at, "title": title, "breadcrumbs": [(title, "")]}
    context["expiry_days"] = EXPIRY_DAYS
    context["expiry_rows"] = list(_expiry_rows(request, at))
    if request.user.has_perm("staff.confirm_account"):
        waiting = StaffAccount.objects.filter(waiting_changes__expires_at__gt=at)
        context["waiting_accounts"] = waiting.distinct().count()
        context["waiting_accounts_url"] = _list_url("staff.staffaccount", state="waiting")
    if _may_view(request, _LOGINS):
        context |= _logins(at)
    if _may_view(request, "tokens.signingkey"):
        context |= _signing_key(at)
    return context


def _may_view(request: HttpRequest, model: str) -> bool:
    app, name = model.split(".")
    return request.user.has_perm(f"{app}.view_{name}")


def _list_url(model: str, **filters: Any) -> str:
    query = f"?{urlencode(filters)}" if filters else ""
    return reverse(f"admin:{model.replace('.', '_')}_changelist") + query


def _logins(at: datetime) -> dict[str, Any]:
    now = traffic(at, count_settled(at))
    first, failing = now.bars[0].begins, failing_clients(at)
    return {
        "traffic": now,
        "week": None if now.lacks_latest else week_of(now.full_hours, now.week_ago),
        # Each total and each bar with the address of its list.
        "figures": [
            (_("Logins"), now.issued + now.refused, _since_url(first)),
            (_("Token issued"), now.issued, _since_url(first, reason="issued")),
            (_("Refused"), now.refused, _since_url(first, reason="refused")),
        ],
        "chart": chart_of(now.bars, _hour_url),
        "reasons": [
            (staff_text_of(reason), count, _since_url(first, reason=reason))
            for reason, count in now.top_reasons
        ],
        "failing": failing,
        "refused_url": _list_url(_LOGINS, period="1", reason="refused"),
        "failing_clients": [
            (client, _why_it_fails(client), _refusals_url(client)) for client in failing.clients
        ],
        "throttled_clients": [
            (client, _throttled_url(client, at)) for client in throttled_clients(at)
        ],
    }


def _why_it_fails(client: FailingClient) -> Any:
    return staff_text_of(client.reason, client.system_user.credential_kind).what


def _since_url(moment: datetime, **filters: str) -> str:
    return _list_url(_LOGINS, **{"from": moment.isoformat()}, **filters)


def _hour_url(begins: datetime) -> str:
    hour = {"from": begins.isoformat(), "to": (begins + timedelta(hours=1)).isoformat()}
    return _list_url(_LOGINS, **hour)


def _refusals_url(client: FailingClient) -> str:
    return _since_url(client.failing_since, q=client.system_user.client_id, reason="refused")


def _throttled_url(client: ThrottledClient, at: datetime) -> str:
    return _since_url(at - THROTTLED_LOOKBACK, q=client.system_user.client_id)


def _expiry_rows(request: HttpRequest, at: datetime) -> Iterator[ExpiryRow]:
    """What ends soon: each number leads to *Ending soon* with that kind and time."""
    for kind in KINDS:
        if kind.may_be_seen(request):
            counts = expiring(kind, at)
            yield ExpiryRow(kind.plural, [(count, _ending_url(kind, count)) for count in counts])


def _ending_url(kind: EndingKind, count: ExpiryCount) -> str:
    query = urlencode({"kind": kind.name, "within": count.days})
    return f"{reverse('admin:ending_soon')}?{query}"


def _signing_key(at: datetime) -> dict[str, Any]:
    """The key that signs now; its private part is not read."""
    usable = SigningKey.objects.filter(compromised_at=None, signs_from__lte=at)
    signing = usable.defer("private_key").first()
    age = at - signing.signs_from if signing else timedelta()
    return {
        "signing_key": signing,
        "signing_key_days": age.days,
        "signing_key_is_old": age >= OLD_KEY,
        "signing_keys_url": _list_url("tokens.signingkey"),
    }
