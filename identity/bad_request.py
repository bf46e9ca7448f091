"""The 400 for machines where Django refuses a request: for example for its Host."""

from django.http import HttpRequest, JsonResponse

from tokens.http import error_response

_DESCRIPTION = "The request is malformed. The developer of the client must correct it."


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """JSON, whatever `Accept` says."""
    return error_response(400, "invalid_request", _DESCRIPTION)
