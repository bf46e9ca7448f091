"""What the pages of the registry show of logins: the registry itself knows nothing of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.template import Context, Library
from django.utils.safestring import SafeString

from identity.staff.framework.badges import Badge
from identity.staff.logins.impact import impact_of
from identity.staff.logins.reasons import badge_of_login, names_in, taxpayers_of
from identity.staff.logins.secret_use import use_of_secrets
from identity.staff.logins.unrecorded import throttled_for
from taxpayers.models import RateLimitCounter, SystemUser
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import CounterState, current_quota

register = Library()

RECENT = 5
_MAX_COUNTED = 10_000


@register.inclusion_tag("staff/logins/recent_logins.html", takes_context=True)
def recent_logins(context: Context, system_user: SystemUser) -> dict[str, Any]:
    """The latest logins under its client id, with their reasons."""
    if not may_see_logins(context):
        return {}
    logins = LoginEvent.objects.filter(client_id=system_user.client_id).order_by("-pk")
    return {"may_see": True, "logins": _listed(logins[:RECENT]), "client_id": system_user.client_id}


@register.inclusion_tag("staff/logins/secret_use.html", takes_context=True)
def secret_use(
    context: Context, system_user: SystemUser, secrets: Sequence[dict[str, Any]], title: str = ""
) -> dict[str, Any]:
    """What uses these secrets (each `shown_secret`): valid ones, and ended ones still sent."""
    if not may_see_logins(context):
        return {}
    at: datetime = context["at"]
    rows = [entry["row"] for entry in secrets]
    used = context.get("used") or use_of_secrets(system_user, rows, at)
    uses = [entry | {"use": used.of[entry["row"].pk]} for entry in secrets]
    shown = [
        one for one in uses if one["row"].is_live(at) or one["use"].issued or one["use"].refused
    ]
    return {"may_see": True, "title": title, "secrets": shown, "used": used}


@register.inclusion_tag("staff/logins/rate.html", takes_context=True)
def rate(context: Context, system_user: SystemUser) -> dict[str, Any]:
    """How often it logs in, against its limit."""
    at: datetime = context["at"]
    may_see = may_see_logins(context)
    hour_ago = first_id(at - timedelta(hours=1))
    last_hour = LoginEvent.objects.filter(client_id=system_user.client_id, pk__gte=hour_ago)
    limit = system_user.logins_per_minute
    usage = RateLimitCounter.objects.filter(pk=system_user.pk).first()
    counter = CounterState(usage.window_started_at, usage.used) if usage else None
    used = current_quota(counter, limit, at).used
    return {
        "limit": limit,
        "used": used,
        "throttled": throttled_for(system_user.client_id)[:1] if may_see else (),
        "percent": min(100, round(100 * used / limit)) if limit else 0,
        "last_hour": last_hour.order_by()[:_MAX_COUNTED].count() if may_see else None,
    }


@register.inclusion_tag("staff/logins/impact.html", takes_context=True)
def refused_logins(context: Context, record: Any) -> dict[str, Any]:
    """What blocking, deactivating or revoking this record would have refused."""
    impact = impact_of(record, context["at"])
    shown = impact.refused[:RECENT]
    return {
        "consequences": impact,
        "logins": _listed(shown) if may_see_logins(context) else [],
        "hidden": len(impact.refused) - len(shown),
    }


def may_see_logins(context: Context) -> bool:
    """Whether the reader of the page may see logins."""
    return bool(context["request"].user.has_perm("tokens.view_loginevent"))


def _listed(logins: Iterable[LoginEvent]) -> list[tuple[LoginEvent, Badge, SafeString]]:
    found = list(logins)
    names = names_in(found)
    return [(event, badge_of_login(event), taxpayers_of(event, names)) for event in found]
