"""The 400 and 404 for machines, where no view answered: JSON, whatever `Accept` says."""

from django.http import HttpRequest, JsonResponse

from tokens.http import error_body, error_response

_MALFORMED = "The request is malformed. The developer of the client must correct it."


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django refuses the request itself, for example for its Host."""
    return error_response(400, "invalid_request", _MALFORMED)


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """There is no such path."""
    return JsonResponse(error_body("not_found", "There is nothing at this path."), status=404)
