"""How the staff's pages look and what their sidebar offers: the settings of django-unfold."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _


def _may_view(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)


def _records(title: Any, icon: str, model: str) -> dict[str, Any]:
    """The list of a kind of record, for those who may see it; `model` is `<app>.<model>`."""
    app, name = model.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{name}_changelist"),
        "permission": _may_view(f"{app}.view_{name}"),
    }


def _staff_css(request: HttpRequest) -> str:
    return static("staff/staff.css")


def _icon(request: HttpRequest) -> str:
    return static("staff/icon.svg")


_START = {"title": _("Today"), "icon": "home", "link": reverse_lazy("admin:index")}
_SIDEBAR = [
    {"items": [_START]},
    {
        "title": _("Who may act"),
        "items": [
            _records(_("Taxpayers"), "business", "taxpayers.taxpayer"),
            _records(_("Intermediaries"), "handshake", "taxpayers.intermediary"),
            _records(_("Permissions"), "verified_user", "taxpayers.grantedpermission"),
            _records(_("Permission codes"), "label", "taxpayers.permissioncode"),
        ],
    },
    {
        "title": _("Who logs in"),
        "items": [
            _records(_("System users"), "dns", "taxpayers.systemuser"),
            _records(_("Logins"), "login", "tokens.loginevent"),
        ],
    },
    {
        "title": _("Audit and keys"),
        "items": [
            _records(_("History"), "history", "taxpayers.change"),
            _records(_("Signing keys"), "key", "tokens.signingkey"),
        ],
    },
    {
        "title": _("Staff accounts"),
        "items": [
            _records(_("Users"), "person", "auth.user"),
            _records(_("Groups"), "group", "auth.group"),
        ],
    },
]

# A calm blue; white on its 600 and 700 has a contrast of more than 4.5:1 (WCAG 1.4.3).
_PRIMARY = {
    "50": "oklch(97% .014 254.604)",
    "100": "oklch(93.2% .032 255.585)",
    "200": "oklch(88.2% .059 254.128)",
    "300": "oklch(80.9% .105 251.813)",
    "400": "oklch(70.7% .165 254.624)",
    "500": "oklch(62.3% .214 259.815)",
    "600": "oklch(54.6% .245 262.881)",
    "700": "oklch(48.8% .243 264.376)",
    "800": "oklch(42.4% .199 265.638)",
    "900": "oklch(37.9% .146 265.522)",
    "950": "oklch(28.2% .091 267.935)",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": _("Token service"),
    "SITE_HEADER": _("Token service"),
    "SITE_SUBHEADER": _("Who may log in to e-invoicing"),
    "SITE_SYMBOL": "shield_person",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _icon}],
    "DASHBOARD_CALLBACK": "identity.staff.overview.page.today",
    "SHOW_HISTORY": False,
    "SHOW_LANGUAGES": True,
    "STYLES": [_staff_css],
    "COLORS": {"primary": _PRIMARY},
    "SIDEBAR": {"show_search": False, "navigation": _SIDEBAR},
}
