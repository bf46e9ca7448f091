"""What `/sandbox.json` and the command `sandbox` show: every client, and how it is used."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from identity.sandbox.catalogue import BY_REQUEST, CLIENTS, TOKEN, SandboxClient
from identity.sandbox.reset import RESET_PATH
from tokens.answers.response import help_url
from tokens.http import read_only

LIMIT = _(
    "One address has 500 logins with clients of the sandbox at once; after that it waits up to 10"
    " seconds before each (429 with Retry-After). It is forgotten after an hour without one."
)
RESET = _(
    "POST /sandbox/reset with client_id and client_secret, sent as for a login, resets the counter"
    " of that client."
)


def sandbox_as_json() -> dict[str, Any]:
    """All of it, in English."""
    return {
        "token_endpoint": f"{settings.AUTH_URL}/connect/token",
        "reset_endpoint": f"{settings.AUTH_URL}{RESET_PATH}",
        "limit": str(LIMIT),
        "clients": [client_as_json(client) for client in CLIENTS],
        "requests": [
            {"reason": str(reason), "send": str(send), "help": help_url(reason)}
            for reason, send in BY_REQUEST.items()
        ],
    }


def client_as_json(client: SandboxClient) -> dict[str, Any]:
    """One client; `help` is the page of its reason, where it is refused."""
    return {
        "name": str(client.name),
        "gets": str(client.gets),
        "does": str(client.does),
        "client_id": client.credentials.client_id,
        "client_secret": client.credentials.client_secret,
        "onbehalfof": client.on_behalf_of or None,
        "help": None if client.gets == TOKEN else help_url(client.gets),
    }


@read_only
def sandbox_json(request: HttpRequest) -> HttpResponse:
    """The list for programs."""
    return HttpResponse(
        json.dumps(sandbox_as_json(), indent=2),
        content_type="application/json",
        headers={"Cache-Control": "public, max-age=3600"},
    )
