"""What a login is answered with: one shape for every answer (contract 1, RFC 6749 5.1 and 5.2)."""

import json

from django.http import HttpResponse

from taxpayers.rules import Reason, Refusal
from tokens.endpoint.login import Login
from tokens.http import error_body, rfc3339
from tokens.rate_limits.limits import Throttle
from tokens.refusals import ERRORS, TOO_MANY_FAILED, describe

_RETRY_UNAVAILABLE_SECONDS = 5
_HEARD_AFTER_A_PAUSE = 1


def issued(login: Login, body: str) -> HttpResponse:
    """200 with oauthlib's body."""
    return _answer(login, 200, "OK", body)


def refused(login: Login, refusal: Refusal, denial: Throttle | None = None) -> HttpResponse:
    """The refusal as `ERRORS` says it; `denial` where a limit refused."""
    error = ERRORS[refusal.reason]
    is_backoff = denial is not None and not denial.limit
    text = TOO_MANY_FAILED if is_backoff else describe(refusal)
    description = f"{text} Reference: {login.id}"
    body = json.dumps(error_body(error.error, description))
    # Many ERP systems show nothing but the status line, so it names the error.
    response = _answer(login, error.status, error.error, body)
    if denial is not None:
        _say_denied(response, login, denial)
    elif refusal.reason is Reason.METHOD_NOT_ALLOWED:
        response["Allow"] = "POST"
    elif refusal.reason is Reason.TEMPORARILY_UNAVAILABLE:
        response["Retry-After"] = str(_RETRY_UNAVAILABLE_SECONDS)
    return response


def _answer(login: Login, status: int, phrase: str, body: str) -> HttpResponse:
    response = HttpResponse(
        body,
        status=status,
        reason=phrase,
        headers={
            "Content-Type": "application/json",
            "Cache-Control": "no-store",
            "Pragma": "no-cache",
            "correlationId": str(login.id),
        },
    )
    if login.secret is not None:
        response["X-Client-Secret-Expires-At"] = rfc3339(login.secret.expires_at)
    if login.quota is not None and login.quota.limit:
        response["X-Rate-Limit-Limit"] = str(login.quota.limit)
        response["X-Rate-Limit-Remaining"] = str(login.quota.remaining)
    return response


def _say_denied(response: HttpResponse, login: Login, denial: Throttle) -> None:
    response["Retry-After"] = str(denial.retry_after_seconds(login.at))
    # Of failed logins one is heard after each pause.
    response["X-Rate-Limit-Limit"] = str(denial.limit or _HEARD_AFTER_A_PAUSE)
    response["X-Rate-Limit-Remaining"] = "0"
    # A moment, not a number of seconds: that is how ERP systems of this field read it.
    response["X-Rate-Limit-Reset"] = rfc3339(denial.until)
    if denial.secret_expires_at is not None:
        response["X-Client-Secret-Expires-At"] = rfc3339(denial.secret_expires_at)
