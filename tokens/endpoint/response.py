"""What a login is answered with: one shape for every answer (contract 1, RFC 6749 5.1 and 5.2)."""

import json
from datetime import datetime
from uuid import UUID

from django.http import HttpResponse

from taxpayers.rules import Refused
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.endpoint.throttle import RateLimited
from tokens.http import error_body, rfc3339
from tokens.rate_limits.quota import Quota
from tokens.refusals.description import TOO_MANY_FAILED, describe
from tokens.refusals.table import REFUSALS, ProtocolReason

_RETRY_UNAVAILABLE_SECONDS = 5
_ALLOWED_AFTER_A_PAUSE = 1  # of failed logins: one after each pause


def issued_response(
    reference: UUID, body: str, client: AuthenticatedClient, quota: Quota
) -> HttpResponse:
    """200 with oauthlib's body."""
    response = _response(reference, 200, "OK", body)
    _add_client_headers(response, client, quota)
    return response


def refused_response(
    reference: UUID,
    at: datetime,
    refused: Refused,
    client: AuthenticatedClient | None = None,
    quota: Quota | None = None,
) -> HttpResponse:
    """The refusal as its row of the table says; headers about the client only if it proved itself.

    `at` is the moment from which `Retry-After` counts.
    """
    refusal = REFUSALS[refused.reason]
    # Many ERP systems show nothing but the status line, so it names the error.
    response = _response(
        reference,
        refusal.status,
        refusal.error,
        json.dumps(error_body(refusal.error, f"{_description(refused)} Reference: {reference}")),
    )
    if isinstance(refused, RateLimited):
        _add_limit_headers(response, refused, at)
    elif client is not None:
        _add_client_headers(response, client, quota)
    if refused.reason == ProtocolReason.METHOD_NOT_ALLOWED:
        response["Allow"] = "POST"
    elif refused.reason == ProtocolReason.TEMPORARILY_UNAVAILABLE:
        response["Retry-After"] = str(_RETRY_UNAVAILABLE_SECONDS)
    return response


def _description(refused: Refused) -> str:
    is_backoff = isinstance(refused, RateLimited) and not refused.throttle.limit
    return TOO_MANY_FAILED if is_backoff else describe(refused)


def _response(reference: UUID, status: int, phrase: str, body: str) -> HttpResponse:
    return HttpResponse(
        body,
        status=status,
        reason=phrase,
        headers={
            "Content-Type": "application/json",
            "Cache-Control": "no-store",
            "Pragma": "no-cache",
            "correlationId": str(reference),
        },
    )


def _add_client_headers(
    response: HttpResponse, client: AuthenticatedClient, quota: Quota | None
) -> None:
    response["X-Client-Secret-Expires-At"] = rfc3339(client.secret.expires_at)
    if quota is not None and quota.limit:
        response["X-Rate-Limit-Limit"] = str(quota.limit)
        response["X-Rate-Limit-Remaining"] = str(quota.remaining)


def _add_limit_headers(response: HttpResponse, refused: RateLimited, at: datetime) -> None:
    throttle = refused.throttle
    response["Retry-After"] = str(throttle.retry_after_seconds(at))
    response["X-Rate-Limit-Limit"] = str(throttle.limit or _ALLOWED_AFTER_A_PAUSE)
    response["X-Rate-Limit-Remaining"] = "0"
    # A moment, not a number of seconds: that is how ERP systems of this field read it.
    response["X-Rate-Limit-Reset"] = rfc3339(throttle.retry_at)
    if throttle.secret_expires_at is not None:
        response["X-Client-Secret-Expires-At"] = rfc3339(throttle.secret_expires_at)
