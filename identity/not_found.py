"""The 404 for machines."""

from django.http import HttpRequest, JsonResponse

from tokens.http import error_body


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """JSON, whatever `Accept` says."""
    return JsonResponse(error_body("not_found", "There is nothing at this path."), status=404)
