"""What the description takes from the service: examples, patterns, and every refusal."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from identity.developers.examples import REFERENCE, issued_example
from identity.developers.openapi.errors import login_errors, own_errors
from identity.health import public_body
from identity.sandbox.catalogue import CLIENTS
from identity.sandbox.listing import client_as_json, sandbox_as_json
from identity.sandbox.reset import NO_CLIENT, UNAVAILABLE
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tokens.answers.response import ERP_SYSTEM, PROTECTED_API, help_url
from tokens.discovery import metadata
from tokens.explanation import CheckState
from tokens.refusals.table import Check

_DESCRIPTION = (
    "Access tokens for the e-invoicing APIs. An ERP system logs in with its client ID and secret,"
    " and uses the token for all calls until X-Renew-At. Guide: {auth_url}/ and"
    " {auth_url}/errors/"
)
_PUBLIC_CLIENT = CREDENTIALS[SandboxName.ONE_LOGIN_A_MINUTE]


def _explanation(_auth_url: str) -> dict[str, Any]:
    return {
        "reference": str(REFERENCE),
        "at": "2026-11-22T02:00:00Z",
        "outcome": "permission_expired",
        "explanation": "On 2026-11-22 10:00:00 (UTC+0800) the login was refused: …",
        "subject": "C1234567890",
        "actor": "D1111111111",
        "scope": None,
        "checks": [
            {"question": Check.CREDENTIALS.question(), "state": CheckState.PASSED, "advice": None},
            {
                "question": Check.PERMISSION_IN_FORCE.question(),
                "state": CheckState.FAILED,
                "advice": "The permission from the taxpayer named by onbehalfof expired on …",
            },
        ],
        "help": help_url("permission_expired"),
    }


def _metadata(_auth_url: str) -> Any:
    """Those of this very service."""
    request = HttpRequest()
    request.method = "GET"
    return json.loads(metadata(request).content)


def _health(_auth_url: str, *, passed: bool) -> Any:
    return json.loads(public_body(passed=passed))


def _short_sandbox(_auth_url: str) -> dict[str, Any]:
    """With one client and one request, as an example."""
    whole = sandbox_as_json()
    return whole | {"clients": [client_as_json(CLIENTS[0])], "requests": whole["requests"][:1]}


# By its name in openapi.yaml. Each gets the address of the service.
MADE: Mapping[str, Callable[[str], Any]] = {
    "version": lambda _auth_url: settings.VERSION,
    "description": lambda auth_url: _DESCRIPTION.format(auth_url=auth_url),
    "auth_url": lambda auth_url: auth_url,
    "taxpayer_pattern": lambda _auth_url: (
        f"^(?:{settings.TIN_PATTERN})(?::(?:{settings.ROB_PATTERN}))?$"
    ),
    "token": lambda auth_url: json.loads(issued_example(auth_url).body),
    "login_errors": login_errors,
    "protected_api_errors": partial(own_errors, PROTECTED_API),
    "erp_system_errors": partial(own_errors, ERP_SYSTEM),
    "explanation": _explanation,
    "check_states": lambda _auth_url: [
        str(state) for state in CheckState if state is not CheckState.NOT_CHECKED
    ],
    "metadata": _metadata,
    "status_list": lambda auth_url: f"{auth_url}/status/0",
    "ready": partial(_health, passed=True),
    "not_ready": partial(_health, passed=False),
    "sandbox": _short_sandbox,
    "reset_form": lambda _auth_url: {
        "client_id": _PUBLIC_CLIENT.client_id,
        "client_secret": _PUBLIC_CLIENT.client_secret,
    },
    "reset": lambda _auth_url: {
        "client_id": _PUBLIC_CLIENT.client_id,
        "name": SandboxName.ONE_LOGIN_A_MINUTE,
        "logins": 0,
    },
    "no_client": lambda _auth_url: NO_CLIENT,
    "reset_unavailable": lambda _auth_url: UNAVAILABLE,
}
