"""What anybody may read: GET and HEAD only, every refusal in JSON (RFC 9110 section 15.5.6)."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse, JsonResponse

View = Callable[[HttpRequest], HttpResponse]
_METHODS = ("GET", "HEAD")


def read_only(view: View) -> View:
    """Answers any method but GET and HEAD with 405."""

    @wraps(view)
    def answered(request: HttpRequest) -> HttpResponse:
        if request.method in _METHODS:
            return view(request)
        response = error(405, "invalid_request", "This address takes GET and HEAD only.")
        response["Allow"] = ", ".join(_METHODS)
        return response

    return answered


def error(status: int, code: str, description: str) -> JsonResponse:
    """The one shape of an error: `{"error", "error_description"}`, never kept by a cache."""
    body = {"error": code, "error_description": description}
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
