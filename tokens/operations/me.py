"""`GET /api/v1/me`: which taxpayer a token represents and what it allows (contract 2)."""

from collections.abc import Generator, Mapping
from http import HTTPStatus
from typing import Any

from msgspec.json import encode

from tokens.access_tokens.claims import taxpayer_claim
from tokens.access_tokens.status import ACTIVE
from tokens.access_tokens.verification import AccessToken
from tokens.answers.response import Answer, Ended
from tokens.calls import Call
from tokens.http import FAILURES, RETRY_SECONDS, error_body, rfc3339
from tokens.login_settings import login_settings
from tokens.operations.node import Node
from tokens.operations.steps import refusal_of
from tokens.refusals.table import REFUSALS
from tokens.request.arrival import Arrival, called_url
from tokens.request.token_request import RawTokenRequest
from tokens.resource_server.active_token import Unauthorized, authenticate
from tokens.resource_server.possession import ApiRequest

PATH = "/api/v1/me"
_METHODS = ("GET", "HEAD")


def show_token(node: Node, arrival: Arrival, raw: RawTokenRequest) -> Generator[Call, Any, Ended]:
    """The steps of one request, for any active token. They never raise: everyone gets an answer."""
    address = f"{called_url(raw.certificate)}{PATH}"
    sent = ApiRequest(raw.method, address, raw.authorization, raw.dpop, raw.certificate)
    try:
        caller = yield from authenticate(sent, arrival.at)
        if raw.method not in _METHODS:
            return _error(405, "invalid_request", f"Method '{raw.method}' not allowed.")
        return Ended(ACTIVE, _answer(200, _content(caller.token)))
    except Unauthorized as fault:
        return _error(401, fault.error, str(fault), {"WWW-Authenticate": fault.challenge})
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
        status = REFUSALS[refusal_of(arrival, error, "protected API failed").reason].status
        retry = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
        return _error(status, *FAILURES[status], retry)


def report_nothing(arrival: Arrival, ended: Ended, seconds: float) -> None:
    """It changes nothing, and anyone may ask: neither the log nor the metrics show it."""


def _content(token: AccessToken) -> dict[str, Any]:
    """`actor` and `permissions` are null where the taxpayer acts for itself: no limits."""
    return {
        "subject": str(token.subject),
        "taxpayer": taxpayer_claim(token.subject),
        "actor": token.actor,
        "client_id": token.client_id,
        "scopes": token.scopes,
        "permissions": token.permissions if token.actor else None,
        "issued_at": rfc3339(token.issued_at),
        "expires_at": rfc3339(token.expires_at),
        "environment": login_settings().environment,
    }


def _error(
    status: int, error: str, description: str, headers: Mapping[str, str] | None = None
) -> Ended:
    return Ended(error, _answer(status, error_body(error, description), headers or {}))


def _answer(status: int, content: dict[str, Any], headers: Mapping[str, str] = {}) -> Answer:
    body = encode(content)
    return Answer(
        status,
        HTTPStatus(status).phrase,
        {
            "Content-Type": "application/json",
            **headers,
            "Cache-Control": "no-store",
            "Allow": ", ".join(_METHODS),
            "Content-Length": str(len(body)),
        },
        body,
    )
