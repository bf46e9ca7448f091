"""Every exception of a view as a problem; never an error page, never an internal detail."""

import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.db import DatabaseError
from rest_framework import exceptions
from rest_framework.response import Response

from identity.api.framework.problems import MEDIA_TYPE, PROBLEMS, FieldError, Problem, problem_body
from taxpayers.redaction import hide_secrets
from taxpayers.services import OnlyOperators, ServiceError
from tokens.http import RETRY_SECONDS

logger = logging.getLogger("identity.api")

_MAX_NAME_LENGTH = 64  # of a field that is repeated in an answer
_OF_STATUS = {
    401: "invalid_token",
    403: "insufficient_scope",
    404: "not_found",
    405: "method_not_allowed",
    415: "unsupported_media_type",
}


def answer_problem(exception: Exception, reference: str) -> Response:
    """The answer to any exception of a view."""
    problem = _problem_of(exception)
    return Response(
        problem_body(problem, reference),
        status=PROBLEMS[problem.kind].status,
        headers=dict(problem.headers),
        content_type=MEDIA_TYPE,
    )


def field_errors(details: Any, pointer: str = "#") -> Iterator[FieldError]:
    """The errors of a serializer, each with the JSON pointer of its field."""
    if isinstance(details, dict):
        for name, inner in details.items():
            is_whole = name == "non_field_errors"
            yield from field_errors(inner, pointer if is_whole else f"{pointer}/{_token(name)}")
    elif isinstance(details, list):
        for inner in details:
            yield from field_errors(inner, pointer)
    else:
        yield FieldError(str(details), getattr(details, "code", "invalid"), pointer=pointer)


def refused(fault: ServiceError, pointer: str) -> Problem:
    """What a service refused, because of the field at this pointer."""
    error = FieldError(str(fault), fault.code, pointer=pointer)
    return Problem("change_refused", str(fault), [error])


def _token(name: object) -> str:
    # RFC 6901 sections 3 and 6. A secret that was sent as a name is not repeated.
    text = hide_secrets(str(name))[:_MAX_NAME_LENGTH].replace("~", "~0").replace("/", "~1")
    return quote(text, safe="~")


def _problem_of(exception: Exception) -> Problem:
    match exception:
        case Problem():
            return exception
        case OnlyOperators():
            return Problem("managed_by_operators")
        case ServiceError():
            return refused(exception, "#")
        case exceptions.ValidationError():
            errors = tuple(field_errors(exception.detail))
            return Problem("invalid_fields", "Correct the fields listed in errors.", errors)
        case exceptions.APIException() if exception.status_code in _OF_STATUS:
            return _of_framework(exception)
        case exceptions.APIException() if exception.status_code < 500:
            return Problem("malformed_request", str(exception.detail))
        case DatabaseError():
            logger.error("management API: no database", exc_info=exception)
            retry = {"Retry-After": str(RETRY_SECONDS)}
            return Problem("temporarily_unavailable", headers=retry)
        case _:
            logger.error("management API failed", exc_info=exception)
            return Problem("server_error")


def _of_framework(exception: exceptions.APIException) -> Problem:
    challenge = getattr(exception, "auth_header", "")
    is_media = isinstance(exception, exceptions.UnsupportedMediaType)
    return Problem(
        _OF_STATUS[exception.status_code],
        "" if is_media else str(exception.detail).replace('"', "'"),
        headers={"WWW-Authenticate": challenge} if challenge else {},
        error=getattr(exception, "error", ""),
    )
