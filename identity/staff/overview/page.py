"""The first page: each number is a link to the list that it counts, and needs its permission."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.staff.accounts.sign_ins import former_sign_in
from identity.staff.actions import ACTIONS
from identity.staff.display import list_url
from identity.staff.expiring.kinds import KINDS, EndingKind
from identity.staff.framework.filters import EXPIRY_DAYS
from identity.staff.framework.lists import Text
from identity.staff.framework.related import ORDER
from identity.staff.history.report import group_changes, line_of
from identity.staff.logins.reasons import staff_text_of
from identity.staff.logins.unrecorded import throttled_lately
from identity.staff.models import StaffAccount
from identity.staff.overview.logins import draw_bars, failing_clients, traffic
from taxpayers.duties import Duty
from taxpayers.models import Change
from taxpayers.moments import start_of_day
from taxpayers.services.history import CLIENT
from tokens.login_events.counting import count_settled
from tokens.models import LoginEvent, SigningKey

MAX_COUNTED = 10_000
OLD_KEY = timedelta(days=90)
MAX_CHANGES, MAX_FAILING = 4, 5
# What the history also records is no change by a colleague: own sign-ins, exports, first uses.
_OF_COLLEAGUES = [n for n, one in ACTIONS.items() if one.duty not in (None, Duty.AUDIT)]


def expiring(kind: EndingKind, at: datetime) -> dict[int, int]:
    """How many of one kind end within so many days: MAX_COUNTED + 1 at most."""
    # Reads the beginning of an index once: each shorter period is the start of a longer one.
    end, last = kind.end, at + timedelta(days=EXPIRY_DAYS[-1])
    first = kind.rows().filter(**{f"{end}__gte": at, f"{end}__lt": last}).order_by(end)
    within = {
        str(days): Count(end, filter=Q(**{f"{end}__lt": at + timedelta(days=days)}))
        for days in EXPIRY_DAYS
    }
    counts = first.values(end)[: MAX_COUNTED + 1].aggregate(**within)
    return {days: counts[str(days)] for days in EXPIRY_DAYS}


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
        context["waiting_accounts_url"] = list_url(StaffAccount, state="waiting")
    if request.user.has_perm("taxpayers.view_change"):
        since = _changes_since(_last_here(request, at))
        not_theirs = Q(by=request.user.get_username()) | Q(by__endswith=CLIENT)
        changes = Change.objects.filter(at__gt=since, action__in=_OF_COLLEAGUES).exclude(not_theirs)
        groups, _has_more = group_changes(changes.order_by(*ORDER), MAX_CHANGES)
        context["colleagues"] = [line_of(request, group) for group in groups]
        context["colleagues_since"] = since
    if request.user.has_perm("tokens.view_loginevent"):
        context |= _logins(at)
    if request.user.has_perm("tokens.view_signingkey"):
        context |= _signing_key(at)
    return context


def _last_here(request: HttpRequest, at: datetime) -> datetime:
    """When this person signed in before; who did not, sees the last working day."""
    if former := former_sign_in(request.user.get_username()):
        return former
    day = timezone.localdate(at) - timedelta(days=3 if timezone.localtime(at).weekday() == 0 else 1)
    return start_of_day(day)


def _changes_since(moment: datetime) -> datetime:
    """Later, where so much was recorded since that not all of it is read."""
    newest = Change.objects.order_by("-at").values_list("at", flat=True)
    return max([moment, *newest[MAX_COUNTED : MAX_COUNTED + 1]])


def _logins(at: datetime) -> dict[str, Any]:
    now = traffic(at, count_settled(at))
    first, failing = now.bars[0].begins, failing_clients(at)
    return {
        "traffic": now,
        # Each total and each bar with the address of its list.
        "figures": [
            (_("Logins"), now.issued + now.refused, _since_url(first)),
            (_("Token issued"), now.issued, _since_url(first, reason="issued")),
            (_("Refused"), now.refused, _since_url(first, reason="refused")),
        ],
        "chart": draw_bars(
            [
                (one, _since_url(one.begins, to=(one.begins + timedelta(hours=1)).isoformat()))
                for one in now.bars
            ]
        ),
        "reasons": [
            (staff_text_of(reason), count, _since_url(first, reason=reason))
            for reason, count in now.top_reasons
        ],
        "has_more_failing": len(failing) > MAX_FAILING,
        "refused_url": list_url(LoginEvent, period="1", reason="refused"),
        "failing_clients": [
            (
                client,
                staff_text_of(client.reason, client.system_user.credential_kind).what,
                _since_url(client.failing_since, q=client.system_user.client_id, reason="refused"),
            )
            for client in failing[:MAX_FAILING]
        ],
        "throttled": throttled_lately(at),
    }


def _since_url(moment: datetime, **filters: str) -> str:
    return list_url(LoginEvent, **{"from": moment.isoformat()}, **filters)


def _expiry_rows(request: HttpRequest, at: datetime) -> Iterator[tuple[Text, list[Any]]]:
    """The title of each kind, and its counts, each with the address of *Ending soon* for it."""
    for kind in KINDS:
        if kind.may_be_seen(request):
            counts = expiring(kind, at)
            if not any(counts.values()):
                continue
            url = f"{reverse('admin:ending_soon')}?kind={kind.name}&within="
            yield kind.plural, [(days, _capped(n), f"{url}{days}") for days, n in counts.items()]


def _capped(count: int) -> str:
    return f"{count:,}" if count <= MAX_COUNTED else f"{MAX_COUNTED:,}+"


def _signing_key(at: datetime) -> dict[str, Any]:
    """The key that signs now; its private part is not read."""
    usable = SigningKey.objects.filter(compromised_at=None, signs_from__lte=at)
    signing = usable.defer("private_key").first()
    age = at - signing.signs_from if signing else timedelta()
    return {
        "signing_key": signing,
        "signing_key_days": age.days,
        "signing_key_is_old": age >= OLD_KEY,
        "signing_keys_url": list_url(SigningKey),
    }
