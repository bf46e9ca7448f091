"""The context of the sign-in pages: the look of the staff pages, and where passkeys work."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from unfold.settings import get_config

from identity.staff.accounts.adapters import passkey_host
from identity.staff.accounts.backend import StaffBackend
from identity.staff.accounts.pages.state import why_it_only_reads
from identity.staff.models import StaffAccount
from identity.staff.navigation import environment


def sign_in(request: HttpRequest) -> dict[str, Any]:
    """The context of `templates/allauth/`; empty for every other page."""
    match = request.resolver_match
    if match is not None and match.app_name == "admin":
        return {"environment": environment(), "only_reads": _only_reads(request.user)}
    look = get_config()
    return {
        "site_title": look["SITE_TITLE"],
        "colors": look["COLORS"],
        "border_radius": look.get("BORDER_RADIUS"),
        "environment": environment(),
        "is_demo": settings.IS_EMBEDDED,
        "is_second_factor_required": settings.SECOND_FACTOR_REQUIRED,
        "passkey_host": passkey_host(),
        "staff_url": settings.STAFF_URL,
    }


def _only_reads(user: Any) -> str:
    """Why the signed-in person only reads; empty if they use what their role may do."""
    if not isinstance(user, StaffAccount) or not StaffBackend().only_reads(user):
        return ""
    return why_it_only_reads(user)
