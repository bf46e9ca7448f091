"""`/sandbox` in each language, and `/sandbox.json`: for everybody (only in test).

The same for all callers and without a query, so that it costs the database nothing.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from identity.developers.pages import Page, show
from identity.sandbox.catalogue import BY_REQUEST, CLIENTS
from identity.sandbox.listing import LIMIT, RESET
from taxpayers.secret_once import login_example
from tokens.refusals.table import REFUSALS


def sandbox_page(request: HttpRequest, language: str) -> HttpResponse:
    """The list for people."""
    return show(request, _SANDBOX, language)


def _context() -> Mapping[str, Any]:
    example = login_example(CLIENTS[0].credentials, f"{settings.AUTH_URL}/connect/token")
    return {
        "title": _("Sandbox"),
        "example": example.replace(" -d ", " \\\n  -d "),
        "limit": LIMIT,
        "reset": RESET,
        "clients": [
            {
                "client": client,
                "credentials": client.credentials,
                "refusal": REFUSALS.get(client.gets),
            }
            for client in CLIENTS
        ],
        "requests": [{"reason": reason, "send": send} for reason, send in BY_REQUEST.items()],
    }


_SANDBOX = Page("sandbox", "developers/sandbox.html", _context)
