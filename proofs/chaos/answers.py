"""One answer as a client saw it, and whether it is one of the contract's (contract 1). Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jwt

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+")
_ERRORS = {
    400: {
        *("invalid_request", "invalid_client", "invalid_grant"),
        *("unauthorised_client", "unsupported_grant_type", "invalid_scope"),
    },
    405: {"invalid_request"},
    429: {"invalid_request"},
    503: {"temporarily_unavailable"},
}
_HEADERS = {"content-type": "application/json", "cache-control": "no-store", "pragma": "no-cache"}
_TOKEN_LIFETIME = 3600
_HELP = re.compile(r'<https?://[^/]+/errors/[a-z_]+>; rel="help"')

NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request of a caller led to; times are of `time.monotonic`."""

    caller: str
    sent_at: float
    answered_at: float
    status: int = NO_ANSWER
    reference: str = ""
    token: str = ""
    fault: str = ""  # what is not as the contract says; empty if nothing is

    @property
    def seconds(self) -> float:
        return self.answered_at - self.sent_at


def read_answer(
    caller: str,
    times: tuple[float, float],
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> Answer:
    """The answer to a request that was sent and answered at these times.

    Names of headers are in lower case.
    """
    answer = Answer(caller, *times, status, headers.get("correlationid", ""))
    try:
        content: Any = json.loads(body)
    except ValueError:
        return replace(answer, fault=f"status {status} and no JSON")
    fault = _fault_of_headers(headers)
    if status == 200 and isinstance(content, dict):
        token = str(content.get("access_token", ""))
        fault = fault or _fault_of_token(headers, content, token)
        return replace(answer, token=token, fault=fault)
    return replace(answer, fault=fault or _fault_of_refusal(status, headers, content))


def without_answer(caller: str, times: tuple[float, float], error: Exception) -> Answer:
    """A request that got none: a connection that was reset or closed, or silence."""
    return Answer(caller, *times, fault=f"no answer: {type(error).__name__}")


def _fault_of_headers(headers: Mapping[str, str]) -> str:
    for name, value in _HEADERS.items():
        if headers.get(name) != value:
            return f"{name} is {headers.get(name)!r}"
    reference = headers.get("correlationid", "")
    return "" if _UUID.fullmatch(reference) else f"correlationId is {reference!r}"


def _fault_of_token(headers: Mapping[str, str], content: dict[str, Any], token: str) -> str:
    if content.get("token_type") != "Bearer" or content.get("expires_in") != _TOKEN_LIFETIME:
        return "a 200 without token_type or expires_in"
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return "a 200 without a token"
    if claims.get("jti") != headers["correlationid"]:
        return "correlationId is not the jti"
    represented = headers.get("x-represented-taxpayer", "")
    if not represented or represented != claims.get("sub"):
        return f"X-Represented-Taxpayer is {represented!r}"
    return ""


def _fault_of_refusal(status: int, headers: Mapping[str, str], content: Any) -> str:
    if status not in _ERRORS:
        return f"status {status}"
    if not isinstance(content, dict) or set(content) != {"error", "error_description"}:
        return f"status {status} with another body"
    if content["error"] not in _ERRORS[status]:
        return f"status {status} with error {content['error']!r}"
    if not _HELP.fullmatch(headers.get("link", "")):
        return f"Link is {headers.get('link')!r}"
    description, reference = str(content["error_description"]), headers["correlationid"]
    if not _DESCRIPTION.fullmatch(description):
        return "a character in the description that RFC 6749 does not allow"
    if not description.endswith(f" Reference: {reference}"):
        return "the description does not end with the reference"
    if status in (429, 503) and not headers.get("retry-after", "").isdigit():
        return f"status {status} without Retry-After"
    return ""
