"""`GET /`: what an ERP developer needs to know who has nothing but the address; and the sandbox."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.urls import is_valid_path, reverse
from django.utils.translation import gettext, gettext_noop as _

from identity.developers.examples import TAXPAYER, as_text, issued_example, refused_example
from identity.developers.pages import Page
from identity.developers.snippets.catalogue import SNIPPETS, source_of
from identity.sandbox.catalogue import BY_REQUEST, CLIENTS
from identity.sandbox.listing import LIMIT, RESET
from taxpayers.models.system_user import DEFAULT_LOGINS_PER_MINUTE
from taxpayers.secret_once import login_example
from tokens.lifetime import TOKEN_LIFETIME
from tokens.refusals.table import REFUSALS, ProtocolReason

_RENEW_EARLIER_MINUTES = 5
# By their paths below AUTH_URL; those without a method open in a browser.
_ADDRESSES = (
    ("POST", reverse("token"), _("log in")),
    ("POST", reverse("revocation"), _("end a token of yours")),
    ("GET", reverse("me"), _("which taxpayer a token represents, and what it allows")),
    ("GET", reverse("credentials"), _("your client, its secrets and its limit")),
    ("DELETE", reverse("credentials"), _("end a secret that leaked")),
    ("GET", reverse("permissions"), _("for which taxpayers you may act")),
    (
        "POST",
        unquote(reverse("explanation", args=["{reference}"])),
        _("why one of your logins was refused"),
    ),
    ("", reverse("metadata"), _("the metadata of this service (RFC 8414)")),
    ("", reverse("jwks"), _("the keys that sign tokens")),
    ("", "/reference", _("all of these on one page")),
    ("", "/api-teams", _("for teams of protected APIs: how to verify tokens")),
    ("", "/management-api", _("for programs of the tax authority: how to manage the registry")),
    ("", "/packages/", _("packages that verify tokens, with their digests")),
    ("", "/openapi.json", _("the OpenAPI description of all of these")),
    ("", "/health", _("is this service ready, and which version is it")),
)
# What other parts of the service may add; shown where they are served.
_OPTIONAL = (
    ("/sandbox", _("Sandbox: clients that always fail in one way, for your tests")),
    ("/clientcheck.py", _("Client check: plays this service against your program, and reports")),
    (
        "/api/v1/management/openapi.json",
        _("OpenAPI description of the management API, for programs of the tax authority"),
    ),
)


def _context() -> Mapping[str, Any]:
    auth_url = settings.AUTH_URL
    minutes = int(TOKEN_LIFETIME.total_seconds()) // 60
    return {
        "title": "",
        "snippets": [
            {"snippet": snippet, "source": source_of(snippet, auth_url)} for snippet in SNIPPETS
        ],
        "issued": as_text(issued_example(auth_url)),
        "limited": as_text(refused_example(ProtocolReason.RATE_LIMITED, auth_url)),
        "taxpayer": TAXPAYER,
        "limit": DEFAULT_LOGINS_PER_MINUTE,
        "minutes": minutes,
        "use_minutes": minutes - _RENEW_EARLIER_MINUTES,
        "secret_days": settings.SECRET_LIFETIME.days,
        "addresses": _ADDRESSES,
        "optional": [row for row in _OPTIONAL if is_valid_path(row[0])],
        "has_sandbox": is_valid_path("/sandbox"),
        "version": settings.VERSION,
        "has_staff_pages": settings.SERVE == "both",
    }


home = Page("", "developers/home.html", _context)


def _sandbox() -> Mapping[str, Any]:
    example = login_example(CLIENTS[0].credentials, f"{settings.AUTH_URL}/connect/token")
    return {
        "title": gettext("Sandbox"),
        "example": example.replace(" -d ", " \\\n  -d "),
        "limit": LIMIT,
        "reset": RESET,
        "clients": [{"client": client, "refusal": REFUSALS.get(client.gets)} for client in CLIENTS],
        "requests": [{"reason": reason, "send": send} for reason, send in BY_REQUEST.items()],
    }


sandbox_page = Page("sandbox", "developers/sandbox.html", _sandbox)
