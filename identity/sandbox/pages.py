"""`/sandbox` and `/sandbox.json`: the clients of the sandbox, for everybody (test alone).

Made once and the same for everybody: no query, so that nobody costs the database anything.
"""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join

from identity.sandbox.catalogue import BY_REQUEST, CLIENTS, TOKEN, SandboxClient
from identity.sandbox.reset import RESET_PATH
from tokens.http import read_only
from tokens.refusals.help_page import help_path, help_url

_CACHEABLE = {"Cache-Control": "public, max-age=3600"}
_LIMIT = (
    "One address has 500 logins with clients of the sandbox at once; after that it waits up to 10"
    " seconds before each (429 with Retry-After). It is forgotten after an hour without one."
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sandbox</title>
</head>
<body>
<h1>Sandbox</h1>
<p>Each of these clients always behaves in one way, so that an ERP system can test what it does
then. They exist in the test environment only, and their secrets are public: never send anything
real with their tokens.
For programs: <a href="/sandbox.json">/sandbox.json</a>.</p>
<pre>{example}</pre>
<p>{limit} {reset}</p>
<table>
<thead><tr><th>Client</th><th>Gets</th><th>What it shows</th><th>client_id, client_secret</th>
<th>onbehalfof</th></tr></thead>
<tbody>
{clients}
</tbody>
</table>
<h2>Reasons that depend on the request</h2>
<p>With any client, for example <code>works</code>:</p>
<table>
<thead><tr><th>Reason</th><th>What to send</th></tr></thead>
<tbody>
{requests}
</tbody>
</table>
</body>
</html>
"""
_ROW = (
    "<tr><th><code>{}</code></th><td>{}</td><td>{}</td>"
    "<td><code>{}</code><br><code>{}</code></td><td><code>{}</code></td></tr>"
)
_REQUEST_ROW = '<tr><th><a href="{}"><code>{}</code></a></th><td>{}</td></tr>'


def sandbox_as_json() -> dict[str, Any]:
    """All of it, as the command and the address show it."""
    return {
        "token_endpoint": f"{settings.AUTH_URL}/connect/token",
        "reset_endpoint": f"{settings.AUTH_URL}{RESET_PATH}",
        "limit": _LIMIT,
        "clients": [client_as_json(client) for client in CLIENTS],
        "requests": [
            {"reason": str(reason), "send": send, "help": help_url(reason)}
            for reason, send in BY_REQUEST.items()
        ],
    }


def client_as_json(client: SandboxClient) -> dict[str, Any]:
    """One client; `help` is the page of its reason, where it is refused."""
    return {
        "name": str(client.name),
        "gets": str(client.gets),
        "does": client.does,
        "client_id": client.credentials.client_id,
        "client_secret": client.credentials.client_secret,
        "onbehalfof": client.on_behalf_of or None,
        "help": None if client.gets == TOKEN else help_url(client.gets),
    }


def reset_text() -> str:
    """How the counter of a client is reset."""
    return (
        f"POST {RESET_PATH} with client_id and client_secret, sent as for a login, resets the"
        " counter of that client."
    )


def _example() -> str:
    client = CLIENTS[0]
    return (
        f"curl {settings.AUTH_URL}/connect/token -d grant_type=client_credentials"
        f" -d client_id={client.credentials.client_id}"
        f" -d client_secret={client.credentials.client_secret}"
    )


def _gets(client: SandboxClient) -> str:
    if client.gets == TOKEN:
        return "a token"
    return format_html('<a href="{}"><code>{}</code></a>', help_path(client.gets), client.gets)


@read_only
def sandbox_page(request: HttpRequest) -> HttpResponse:
    """The list for people."""
    rows = (
        (
            *(client.name, _gets(client), client.does),
            *(client.credentials.client_id, client.credentials.client_secret),
            client.on_behalf_of or "-",
        )
        for client in CLIENTS
    )
    requests = ((help_path(reason), reason, send) for reason, send in BY_REQUEST.items())
    page = format_html(
        _PAGE,
        example=_example(),
        limit=_LIMIT,
        reset=reset_text(),
        clients=format_html_join("\n", _ROW, rows),
        requests=format_html_join("\n", _REQUEST_ROW, requests),
    )
    return HttpResponse(page, headers=_CACHEABLE)


@read_only
def sandbox_json(request: HttpRequest) -> HttpResponse:
    """The list for programs."""
    body = json.dumps(sandbox_as_json(), indent=2)
    return HttpResponse(body, content_type="application/json", headers=_CACHEABLE)
