"""What the description takes from the service: examples, patterns, and every refusal."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from identity.developers.examples import AT, REFERENCE, issued_example, refused_example
from identity.health import public_answer
from identity.sandbox.catalogue import CLIENTS
from identity.sandbox.listing import NO_CLIENT, UNAVAILABLE, client_as_json, sandbox_as_json
from taxpayers.credentials import Credentials
from taxpayers.rules import Refused
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tokens.answers.response import ERP_SYSTEM, PROTECTED_API, help_url, refused_by
from tokens.discovery import metadata
from tokens.explanation import CheckState
from tokens.refusals.table import REFUSALS, Check, ProtocolReason
from tokens.system_warnings import HEADER as WARNING

_DESCRIPTION = (
    "Access tokens for the e-invoicing APIs. An ERP system logs in with its client ID and secret,"
    " and uses the token for all calls until X-Renew-At. Guide: {auth_url}/ and"
    " {auth_url}/errors/"
)
_PUBLIC_CLIENT = CREDENTIALS[SandboxName.ONE_LOGIN_A_MINUTE]


def _login_form(_auth_url: str) -> dict[str, str]:
    """In the sandbox one that works: collections made of the description are filled with it."""
    works = CREDENTIALS[SandboxName.WORKS]
    if settings.ENVIRONMENT != "test":
        works = Credentials("ci_live_…", "cs_live_…")
    return {"grant_type": "client_credentials", **asdict(works)}


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
    request = HttpRequest()
    request.method = "GET"
    return json.loads(metadata(request).content)


def _health(_auth_url: str, *, passed: bool) -> Any:
    return json.loads(public_answer(passed).content)


def _short_sandbox(_auth_url: str) -> dict[str, Any]:
    whole = sandbox_as_json()
    return whole | {"clients": [client_as_json(CLIENTS[0])], "requests": whole["requests"][:1]}


Part = dict[str, Any]

_OF_EVERY_BODY = ("Content-Type", "Content-Length", "Pragma")
_ALWAYS = ("correlationId", "Cache-Control")


def login_errors(auth_url: str) -> Part:
    """The refusals of a login by their status."""
    ordered = sorted(REFUSALS, key=lambda reason: REFUSALS[reason].status)
    return {
        str(status): _refusals(status, list(reasons), auth_url)
        for status, reasons in groupby(ordered, key=lambda reason: REFUSALS[reason].status)
    } | {"408": _slow()}


def own_errors(caller: str, _auth_url: str) -> Part:
    """The refusals of introspection and revocation, where only a few reasons can occur."""

    def example(reason: str, parameter: str = "", detail: str = "") -> Part:
        refused = Refused(reason, parameter=parameter, detail=detail)
        body: Part = json.loads(refused_by(REFERENCE, AT, refused, caller).body)
        return body

    twice = "the parameter token is sent more than once"
    examples = {
        "missing_parameter": {"value": example(ProtocolReason.MISSING_PARAMETER, "token")},
        "malformed_request": {"value": example(ProtocolReason.MALFORMED_REQUEST, detail=twice)},
    }
    wrong = {"invalid_credentials": {"value": example(ProtocolReason.INVALID_CREDENTIALS)}}
    return {
        "400": _error("Bad Request", _ALWAYS, examples=examples),
        "401": _error(
            "The ID or the secret is wrong, or the secret has ended",
            (*_ALWAYS, "WWW-Authenticate"),
            examples=wrong,
        ),
        "405": _error(
            "Method Not Allowed",
            (*_ALWAYS, "Allow"),
            example=example(ProtocolReason.METHOD_NOT_ALLOWED),
        ),
        "408": _slow(),
        "429": _error("Too many failures", (*_ALWAYS, "Retry-After")),
        "500": _error(
            "Internal Server Error", _ALWAYS, example=example(ProtocolReason.SERVER_ERROR)
        ),
        "503": _error(
            "Service Unavailable",
            (*_ALWAYS, "Retry-After"),
            example=example(ProtocolReason.TEMPORARILY_UNAVAILABLE),
        ),
    }


def _refusals(status: int, reasons: Iterable[str], auth_url: str) -> Part:
    examples: dict[str, Part] = {}
    headers: dict[str, None] = {}
    for reason in reasons:
        example = refused_example(reason, auth_url)
        headers |= dict.fromkeys(name for name in example.headers if name not in _OF_EVERY_BODY)
        examples[str(reason)] = {
            "summary": REFUSALS[reason].staff_text,
            "value": json.loads(example.body),
        }
    return _error(HTTPStatus(status).phrase, (*headers, WARNING), examples=examples)


def _slow() -> Part:
    return _error("The request took too long to arrive", ("correlationId",))


def _error(description: str, headers: Iterable[str], **shown: Mapping[str, Any]) -> Part:
    """An answer with the body of all errors, and the `example` or the `examples` of it."""
    return {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Error"}, **shown}
        },
    }


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
    "login_form": _login_form,
    "reset_form": lambda _auth_url: asdict(_PUBLIC_CLIENT),
    "reset": lambda _auth_url: {
        "client_id": _PUBLIC_CLIENT.client_id,
        "name": SandboxName.ONE_LOGIN_A_MINUTE,
        "logins": 0,
    },
    "no_client": lambda _auth_url: NO_CLIENT,
    "reset_unavailable": lambda _auth_url: UNAVAILABLE,
}
