"""How protected APIs answer errors: in JSON whatever `Accept` says, in one shape (contract 2)."""

import logging
from typing import Any

from django.db import DatabaseError
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from tokens.http import FAILURES, RETRY_SECONDS, error_body

logger = logging.getLogger("tokens.resource_server")

_ERRORS = {
    401: "invalid_token",
    403: "insufficient_scope",
    404: "not_found",
    409: "conflict",
    **{status: error for status, (error, _) in FAILURES.items()},
}


class InsufficientScope(PermissionDenied):
    """403 with its challenge (RFC 6750 3.1); `scope` is the scope that the token lacks, if any."""

    def __init__(self, description: str, scope: str = "") -> None:
        super().__init__(description)
        missing = f', scope="{scope}"' if scope else ""
        self.auth_header = f'Bearer error="insufficient_scope"{missing}'


def answer_exception(exception: Exception, context: dict[str, Any]) -> Response:
    """The answer to any exception of a view; never an error page, never an internal detail."""
    response = exception_handler(exception, context) or _unexpected(exception)
    details = response.data  # a list, or fields without "detail", where a form is not valid
    description = str(details["detail"]) if "detail" in details else "The request is not valid."
    response.data = error_body(
        getattr(exception, "error", "") or _ERRORS.get(response.status_code, "invalid_request"),
        description.replace('"', "'"),  # readable, and allowed by RFC 6750 section 3
    )
    response["Cache-Control"] = "no-store"
    return response


def _unexpected(exception: Exception) -> Response:
    logger.error("protected API failed", exc_info=exception)
    set_rollback()
    if isinstance(exception, DatabaseError):
        retry = {"Retry-After": str(RETRY_SECONDS)}
        return Response({"detail": FAILURES[503][1]}, status=503, headers=retry)
    return Response({"detail": FAILURES[500][1]}, status=500)
