"""How the protected APIs answer: JSON whatever `Accept` says, and one shape of every error.

`{"error", "error_description"}`, as the login has it (contract 2).
"""

import logging
from collections.abc import Iterable
from typing import Any

from django.db import DatabaseError
from rest_framework.exceptions import APIException
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

logger = logging.getLogger("tokens.resource_server.errors")

_ERRORS = {
    401: "invalid_token",
    403: "insufficient_scope",
    404: "not_found",
    500: "server_error",
    503: "temporarily_unavailable",
}
_RETRY_SECONDS = 5


class AlwaysJson(BaseContentNegotiation):
    """The view's own renderer, never a 406."""

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class _Unavailable(APIException):
    status_code = 503
    default_detail = "The service cannot answer right now. Nothing is wrong with the request."
    wait = _RETRY_SECONDS  # becomes Retry-After


class _ServerError(APIException):
    status_code = 500
    default_detail = "Something went wrong on our side. Nothing needs to be changed on yours."


def answer_exception(exception: Exception, context: dict[str, Any]) -> Response:
    """The answer to whatever a view raised; never an error page, never a detail of ours."""
    response = exception_handler(exception, context)
    if response is None:
        logger.error("protected API failed", exc_info=exception)
        is_outage = isinstance(exception, DatabaseError)
        exception = _Unavailable() if is_outage else _ServerError()
        response = exception_handler(exception, context)
    assert response is not None  # noqa: S101 - it always knows an APIException
    data = response.data  # a list or more where fields of a form are wrong
    said = str(data["detail"]) if "detail" in data else "The request is not valid."
    response.data = {
        "error": _ERRORS.get(response.status_code, "invalid_request"),
        "error_description": said.replace('"', "'"),  # RFC 6750 section 3
    }
    response["Cache-Control"] = "no-store"
    return response
