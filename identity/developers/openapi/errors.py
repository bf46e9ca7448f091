"""Errors in the OpenAPI description: each reason of the table as an example of its status."""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import groupby
from typing import Any

from identity.developers.examples import AT, REFERENCE, refused_example
from taxpayers.rules import Refused
from tokens.answers.response import refused_by
from tokens.refusals.table import REFUSALS, ProtocolReason
from tokens.system_warnings import HEADER as WARNING

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
    """By the server."""
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
