"""The 404 for machines."""

from django.http import HttpRequest, JsonResponse


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """JSON, whatever `Accept` says."""
    return JsonResponse(
        {"error": "not_found", "error_description": "There is nothing at this path."},
        status=404,
    )
