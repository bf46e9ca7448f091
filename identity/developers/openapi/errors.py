"""Errors in the OpenAPI description: each reason of the table as an example of its status."""

import json
from collections.abc import Iterable
from http import HTTPStatus
from itertools import groupby

from identity.developers.examples import AT, REFERENCE, refused_example
from identity.developers.openapi.parts import (
    MOMENT,
    TEXT,
    UUID,
    WHOLE_NUMBER,
    Part,
    header,
    record,
    reference,
    response,
)
from taxpayers.rules import Refused
from tokens.answers.challenge import refused_by
from tokens.http import error_body
from tokens.refusals.table import REFUSALS, ProtocolReason
from tokens.system_warnings import HEADER as WARNING

ERROR = record(error=TEXT, error_description=TEXT)
REF_ERROR = reference("schemas", "Error")
HEADERS: Part = {
    "correlationId": header("The reference of this request: give it to support.", UUID),
    "Link": header(
        'The public page of the reason: `<…/errors/REASON>; rel="help"`.',
        TEXT,
        is_always_there=False,
    ),
    "Retry-After": header("Wait as many seconds.", WHOLE_NUMBER),
    "Allow": header("The methods of this address.", TEXT),
    "WWW-Authenticate": header("How to authenticate (RFC 6750, RFC 6749 section 5.2).", TEXT),
    "Cache-Control": header("`no-store`", TEXT),
    "X-Client-Secret-Expires-At": header(
        "Until when the secret is valid. Only after a right one.", MOMENT, is_always_there=False
    ),
    "X-Rate-Limit-Limit": header(
        "Logins a minute. Not if unlimited.", WHOLE_NUMBER, is_always_there=False
    ),
    "X-Rate-Limit-Remaining": header("How many are left.", WHOLE_NUMBER, is_always_there=False),
    "X-Rate-Limit-Reset": header("When to try again.", MOMENT, is_always_there=False),
    WARNING: header(
        "What will be refused from a date on. Show it to the developer of the ERP system.",
        TEXT,
        is_always_there=False,
    ),
    "DPoP-Nonce": header(
        "For the next proof. Only for clients whose tokens are bound to a key (RFC 9449).",
        TEXT,
        is_always_there=False,
    ),
}

_OF_EVERY_BODY = ("Content-Type", "Content-Length", "Pragma")


def header_refs(*names: str) -> Part:
    """The headers of an answer, by their names."""
    return {name: reference("headers", name) for name in names}


def login_errors(auth_url: str) -> dict[str, Part]:
    """The refusals of a login by their status."""
    ordered = sorted(REFUSALS, key=lambda reason: REFUSALS[reason].status)
    return {
        str(status): _refusals(status, list(reasons), auth_url)
        for status, reasons in groupby(ordered, key=lambda reason: REFUSALS[reason].status)
    } | {"408": slow()}


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
    return response(
        HTTPStatus(status).phrase,
        REF_ERROR,
        headers=header_refs(*headers, WARNING),
        examples=examples,
    )


def own_errors(caller: str) -> dict[str, Part]:
    """The refusals of introspection and revocation, where only a few reasons can occur."""

    def one(reason: str, parameter: str = "", detail: str = "") -> Part:
        refused = Refused(reason, parameter=parameter, detail=detail)
        return _json_of(refused_by(REFERENCE, AT, refused, caller).body)

    missing = one(ProtocolReason.MISSING_PARAMETER, "token")
    malformed = one(
        ProtocolReason.MALFORMED_REQUEST, detail="the parameter token is sent more than once"
    )
    wrong = one(ProtocolReason.INVALID_CREDENTIALS)
    examples = {
        "missing_parameter": {"value": missing},
        "malformed_request": {"value": malformed},
    }
    basic = ("correlationId", "Cache-Control")
    return {
        "400": response("Bad Request", REF_ERROR, headers=header_refs(*basic), examples=examples),
        "401": response(
            "The ID or the secret is wrong, or the secret has ended",
            REF_ERROR,
            headers=header_refs(*basic, "WWW-Authenticate"),
            examples={"invalid_credentials": {"value": wrong}},
        ),
        "405": response(
            "Method Not Allowed",
            REF_ERROR,
            headers=header_refs(*basic, "Allow"),
            example=one(ProtocolReason.METHOD_NOT_ALLOWED),
        ),
        "408": slow(),
        "429": response("Too many failures", REF_ERROR, headers=header_refs(*basic, "Retry-After")),
        "500": response(
            "Internal Server Error",
            REF_ERROR,
            headers=header_refs(*basic),
            example=one(ProtocolReason.SERVER_ERROR),
        ),
        "503": response(
            "Service Unavailable",
            REF_ERROR,
            headers=header_refs(*basic, "Retry-After"),
            example=one(ProtocolReason.TEMPORARILY_UNAVAILABLE),
        ),
    }


def _json_of(body: bytes) -> Part:
    """What a body says."""
    part: Part = json.loads(body)
    return part


def slow() -> Part:
    """408, by the server."""
    return response(
        "The request took too long to arrive", REF_ERROR, headers=header_refs("correlationId")
    )


def malformed() -> Part:
    """Before any address is looked at: no path takes it."""
    return response("The request is malformed", REF_ERROR)


def read_only(what: str) -> dict[str, Part]:
    """Of an address that is only read; `what` (or nothing) may be out of reach."""
    text = f"{what} cannot be read; try again."
    unavailable = response(
        "Service Unavailable",
        REF_ERROR,
        headers=header_refs("Retry-After"),
        example=error_body("temporarily_unavailable", text),
    )
    return {
        "400": malformed(),
        "405": response(
            "Method Not Allowed",
            REF_ERROR,
            headers=header_refs("Allow"),
            example=error_body("invalid_request", "This address takes GET and HEAD only."),
        ),
    } | ({"503": unavailable} if what else {})
