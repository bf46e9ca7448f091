"""What `/sandbox.json`, the command `sandbox` and `POST /sandbox/reset` answer (only in test)."""

import json
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext_lazy as _

from identity.sandbox.catalogue import BY_REQUEST, CLIENTS, TOKEN, SandboxClient
from identity.sandbox.portal import portal_as_json
from taxpayers.credentials import hash_secret
from taxpayers.rules import Refused
from taxpayers.sandbox.clients import CREDENTIALS, proved_name
from taxpayers.services.sandbox.clients import reset_sandbox_counter
from tokens.answers.response import help_url
from tokens.client_auth.client_secret import read_credentials
from tokens.http import error_response, read_only

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
        "portal": portal_as_json(),
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


RESET_PATH = "/sandbox/reset"
NO_CLIENT = (
    "This is not the client_id and client_secret of a client of the sandbox: copy both from"
    " /sandbox. Only their counters can be reset."
)
UNAVAILABLE = "The counter cannot be reset right now; try again."


def reset(request: HttpRequest) -> HttpResponse:
    """200 once the counter is reset; 400 for no client of the sandbox; 503 without a database."""
    if request.method != "POST":
        text = "This address takes POST only."
        return error_response(405, "invalid_request", text, {"Allow": "POST"})
    name = _client_of(request)
    if not name:
        return error_response(400, "invalid_client", NO_CLIENT)
    try:
        reset_sandbox_counter(name=name)
    except DatabaseError:
        return error_response(503, "temporarily_unavailable", UNAVAILABLE, {"Retry-After": "5"})
    return JsonResponse(
        {"client_id": CREDENTIALS[name].client_id, "name": name, "logins": 0},
        headers={"Cache-Control": "no-store"},
    )


def _client_of(request: HttpRequest) -> str:
    """Only by the public list: no query, so guesses cost nothing and tell nothing."""
    try:
        sent = read_credentials(request.POST.dict(), request.META.get("HTTP_AUTHORIZATION", ""))
    except Refused:
        return ""
    return proved_name(sent.client_id, hash_secret(sent.client_secret))
