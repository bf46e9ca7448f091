"""The frame of the staff pages: sidebar and environment. UNFOLD names them."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from identity.staff.expiring.kinds import KINDS

Item = dict[str, Any]


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, with the lists that this member of staff may view."""
    may = request.user.has_perm
    groups = [
        {"title": title, "items": [item for item in items if may(item["permission_name"])]}
        for title, items in _groups().items()
    ]
    start = [{"title": _("Today"), "icon": "home", "link": reverse("admin:index")}]
    if any(kind.may_be_seen(request) for kind in KINDS):
        link = reverse("admin:ending_soon")
        start.append({"title": _("Ending soon"), "icon": "event_upcoming", "link": link})
    return [{"items": start}, *(group for group in groups if group["items"])]


def environment(request: HttpRequest | None = None) -> tuple[str, str]:
    """The environment as a word for staff, and its stable name."""
    word = _("Live") if settings.ENVIRONMENT == "live" else _("Test")
    return word, settings.ENVIRONMENT


def _groups() -> dict[str, list[Item]]:
    return {
        _("Who may act"): [
            _list_of("taxpayers.taxpayer", _("Taxpayers"), "business"),
            _list_of("taxpayers.intermediary", _("Intermediaries"), "handshake"),
            _list_of("taxpayers.grantedpermission", _("Permissions"), "verified_user"),
            _list_of("taxpayers.permissionrequest", _("Requests"), "contract"),
            _list_of(
                "taxpayers.permissioncode", _("Permission codes"), "label", "set_permission_code"
            ),
        ],
        _("Who logs in"): [
            _list_of("taxpayers.systemuser", _("System users"), "dns"),
            _list_of("tokens.loginevent", _("Logins"), "login"),
            _list_of("tokens.protectedapi", _("Protected APIs"), "api"),
            _list_of("webhooks.webhookendpoint", _("Webhooks"), "webhook"),
        ],
        _("Audit and keys"): [
            _list_of("taxpayers.change", _("History"), "history"),
            _list_of("tokens.signingkey", _("Signing keys"), "key"),
        ],
        _("Staff"): [
            _list_of("staff.staffaccount", _("Staff accounts"), "badge"),
            _list_of("staff.staffsignin", _("Sign-ins"), "how_to_reg"),
        ],
    }


def _list_of(model: str, title: str, icon: str, permission: str = "") -> Item:
    app, name = model.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse(f"admin:{app}_{name}_changelist"),
        "permission_name": f"{app}.{permission or f'view_{name}'}",
    }
