"""What a login is answered with: one shape for every answer (contract 1, RFC 6749 5.1, 5.2)."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from msgspec.json import encode as encode_json, format as format_json

from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.answers.description import TOO_MANY, describe
from tokens.answers.pauses import pause_seconds
from tokens.client_auth.authenticated import SECRET_METHODS, AuthenticatedClient
from tokens.dpop.possession import NONCE_HEADER, must_prove_key, nonces
from tokens.http import rfc3339
from tokens.lifetime import renew_at
from tokens.login_settings import login_settings
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import RateLimited
from tokens.refusals.table import REFUSALS, ProtocolReason


def help_path(reason: str) -> str:
    """The path of the page below `AUTH_URL`."""
    return f"/errors/{reason}"


def help_url(reason: str) -> str:
    """The whole address of the page."""
    return f"{login_settings().issuer}{help_path(reason)}"


_ALLOWED_AFTER_A_PAUSE = 1  # of failed logins, or rejected requests: one after each pause


# Who is addressed by the texts of refusals; other callers are called by their own name.
ERP_SYSTEM, PROTECTED_API = "ERP system", "protected API"


class Answer(Value):
    """An HTTP response, whatever carries it; `reason` is the phrase of its status line."""

    status: int
    reason: str
    headers: dict[str, str]
    body: Hidden[bytes]


WHOLE_ANSWER = "answer"  # the type of our own ASGI message, beside those of ASGI


async def send_answer(answer: Answer, send: Callable[..., Awaitable[None]]) -> None:
    """The whole answer in one message, which `identity.server.exchange` writes at once."""
    await send({"type": WHOLE_ANSWER, "answer": answer})


class Ended(Value):
    """How a request ended, by a name for metrics and logs, and its answer."""

    outcome: str
    answer: Answer


def issued_answer(
    reference: str,
    at: datetime,
    body: str,
    represented: TaxpayerId,
    client: AuthenticatedClient,
    quota: Quota | None,
    lifetime: timedelta,
) -> Answer:
    """200 with oauthlib's body, and the represented taxpayer; issued at the moment `at`."""
    answer = accepted_answer(reference, body)
    answer.headers["X-Represented-Taxpayer"] = str(represented)
    answer.headers["X-Renew-At"] = rfc3339(renew_at(client.client_id, at, lifetime))
    _add_client_headers(answer, client, quota, at)
    return answer


def accepted_answer(reference: str, body: str, media_type: str = "application/json") -> Answer:
    """200 with this body."""
    return _answer(reference, 200, "OK", body, media_type)


def json_text(value: dict[str, Any]) -> str:
    """The value as JSON in one line, as people read it."""
    return format_json(encode_json(value), indent=0).decode()


def error_answer(reference: str, status: int, error: str, description: str) -> Answer:
    """An error by its code, with a description that ends with the reference."""
    body = {"error": error, "error_description": f"{description} Reference: {reference}"}
    # Many ERP systems show nothing but the status line, so it names the error.
    return _answer(reference, status, error, json_text(body))


def refused_answer(
    reference: str,
    at: datetime,
    refused: Refused,
    client: AuthenticatedClient | None = None,
    quota: Quota | None = None,
    caller: str = ERP_SYSTEM,
) -> Answer:
    """The refusal as the table says; headers about the client only if it proved itself."""
    refusal = REFUSALS[refused.reason]
    description = _description(refused).replace(ERP_SYSTEM, caller)
    answer = error_answer(reference, refusal.status, refusal.error, description)
    if caller == ERP_SYSTEM:  # the reader of the public pages
        answer.headers["Link"] = f'<{help_url(refused.reason)}>; rel="help"'  # RFC 8288
    if isinstance(refused, RateLimited):
        _add_limit_headers(answer, refused, at)
    elif client is not None:
        _add_client_headers(answer, client, quota, at)
    if refused.reason == ProtocolReason.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = "POST"
    elif refused.reason == ProtocolReason.TEMPORARILY_UNAVAILABLE:
        answer.headers["Retry-After"] = str(pause_seconds())
    return answer


def _description(refused: Refused) -> str:
    cause = refused.cause if isinstance(refused, RateLimited) else None
    return TOO_MANY.get(cause) or describe(refused)


def _answer(
    reference: str, status: int, phrase: str, body: str, media_type: str = "application/json"
) -> Answer:
    encoded = body.encode()
    return Answer(
        status,
        phrase,
        {
            "Content-Type": media_type,
            "Content-Length": str(len(encoded)),
            "Cache-Control": "no-store",
            "Pragma": "no-cache",
            "correlationId": reference,
        },
        encoded,
    )


def _add_client_headers(
    answer: Answer, client: AuthenticatedClient, quota: Quota | None, at: datetime
) -> None:
    if must_prove_key(client):
        answer.headers[NONCE_HEADER] = nonces().current(at)
    if client.method in SECRET_METHODS:
        answer.headers["X-Client-Secret-Expires-At"] = rfc3339(client.credential.expires_at)
    if quota is not None and quota.limit:
        answer.headers["X-Rate-Limit-Limit"] = str(quota.limit)
        answer.headers["X-Rate-Limit-Remaining"] = str(quota.remaining)


def _add_limit_headers(answer: Answer, refused: RateLimited, at: datetime) -> None:
    throttle = refused.throttle
    answer.headers["Retry-After"] = str(throttle.retry_after_seconds(at))
    answer.headers["X-Rate-Limit-Limit"] = str(throttle.limit or _ALLOWED_AFTER_A_PAUSE)
    answer.headers["X-Rate-Limit-Remaining"] = "0"
    # A moment, not a number of seconds: that is how ERP systems of this field read it.
    answer.headers["X-Rate-Limit-Reset"] = rfc3339(throttle.retry_at)
    if throttle.secret_expires_at is not None:
        answer.headers["X-Client-Secret-Expires-At"] = rfc3339(throttle.secret_expires_at)


_INVALID_CLIENT = "invalid_client"
_CHALLENGE = 'Basic realm="identity", charset="UTF-8"'


def refused_by(reference: str, at: datetime, refused: Refused, caller: str) -> Answer:
    """As at the login; who is not authenticated gets 401 (RFC 6749 5.2, RFC 7662 2.3)."""
    answer = refused_answer(reference, at, refused, caller=caller)
    if REFUSALS[refused.reason].error != _INVALID_CLIENT:
        return answer
    headers = answer.headers | {"WWW-Authenticate": _CHALLENGE}
    return Answer(401, answer.reason, headers, answer.body)
