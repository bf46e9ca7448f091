"""The 400 and 404 for machines, where no view answered: JSON, whatever `Accept` says."""

import logging

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from uuid_utils.compat import uuid7

from identity.developers.wrong_paths import meant_by
from tokens.http import error_response

logger = logging.getLogger("identity.server")

NOTHING = "There is nothing at this path."
_RIGHT_ONE = (
    " Send {method} to {url} instead, exactly so: capital letters and every slash count, and there"
    " is no redirect."
)
_MALFORMED = "The request is malformed. The developer of the client must correct it."


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django refuses the request itself, for example for its Host."""
    return error_response(400, "invalid_request", _MALFORMED)


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """There is no such path; where it is clear which one was meant, the text names that one."""
    method, _, path = meant_by(request.path_info).partition(" ")
    if not path:
        return error_response(404, "not_found", NOTHING)
    reference, url = str(uuid7()), settings.AUTH_URL + path
    text = f"{NOTHING}{_RIGHT_ONE.format(method=method, url=url)} Reference: {reference}"
    answer = error_response(404, "not_found", text)
    answer["correlationId"] = reference
    answer["Link"] = f'<{url}>; rel="related", <{settings.AUTH_URL}/>; rel="help"'
    logger.info("wrong path", extra={"reference": reference, "meant": path})
    return answer
