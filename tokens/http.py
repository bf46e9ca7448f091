"""What all JSON answers share: the body of an error, moments, and paths that are only read."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.module_loading import import_string

from taxpayers.redaction import hide_secrets

View = Callable[[HttpRequest], HttpResponse]
Handler = Callable[[HttpRequest], HttpResponseBase]  # what a middleware is and wraps

_READ_METHODS = ("GET", "HEAD")
_NO_STORE = {"Cache-Control": "no-store"}
# What our own APIs answer when they fail: the code of the error and its text.
FAILURES = {
    500: (
        "server_error",
        "Something went wrong on our side. Nothing needs to be changed on yours.",
    ),
    503: (
        "temporarily_unavailable",
        "The service cannot answer right now. Nothing is wrong with the request.",
    ),
}
RETRY_SECONDS = 5
_FORBIDDEN_CHARACTER = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")


def error_description(text: str) -> str:
    """The text without secrets, and with ? for what is not allowed (RFC 6749 5.2, RFC 6750 3)."""
    return _FORBIDDEN_CHARACTER.sub("?", hide_secrets(text))


def error_body(error: str, description: str) -> dict[str, str]:
    """The JSON body of every error of this service, at the login as well as elsewhere."""
    return {"error": error, "error_description": error_description(description)}


def error_response(
    status: int, error: str, description: str, headers: Mapping[str, str] = _NO_STORE
) -> JsonResponse:
    """An error that no cache may store, with these headers besides."""
    return JsonResponse(
        error_body(error, description), status=status, headers={**_NO_STORE, **headers}
    )


def read_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answers any method but GET and HEAD with 405 (RFC 9110 section 15.5.6)."""

    @wraps(view)
    def wrapper(request: HttpRequest, **parts_of_path: Any) -> HttpResponse:
        if request.method in _READ_METHODS:
            return view(request, **parts_of_path)
        text = "This address takes GET and HEAD only."
        return error_response(405, "invalid_request", text, {"Allow": ", ".join(_READ_METHODS)})

    return wrapper


def imported_on_first_use(view: str, **arguments: str) -> Callable[..., HttpResponseBase]:
    """The view of this dotted name: a process that answers logins starts without its code."""

    def call(request: HttpRequest, **parts_of_path: str) -> HttpResponseBase:
        response: HttpResponseBase = import_string(view)(request, **arguments, **parts_of_path)
        return response

    return call


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, to the second: `2026-11-21T10:00:00Z`."""
    # Half of the time that strftime takes.
    return f"{moment.astimezone(UTC).isoformat()[:19]}Z"


def rfc3339_or_none(moment: datetime | None) -> str | None:
    """As `rfc3339`."""
    return None if moment is None else rfc3339(moment)
