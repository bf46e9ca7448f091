"""The 404: JSON where machines come, a page where staff do."""

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

_STAFF_PATHS = ("/admin/", "/signin/")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The 404 of an API is JSON, whatever was asked for; that of a staff's page has a way back."""
    if settings.SERVE == "login" or not request.path_info.startswith(_STAFF_PATHS):
        return JsonResponse(
            {"error": "not_found", "error_description": "There is nothing at this path."},
            status=404,
        )
    return _page(request, exception)


def _page(request: HttpRequest, exception: Exception) -> HttpResponse:
    from identity.staff.framework.not_found import RecordNotFound

    context = {"message": str(exception) if isinstance(exception, RecordNotFound) else ""}
    match = request.resolver_match
    if match is None or match.app_name != "admin" or not request.user.is_staff:
        return render(request, "404.html", context, status=404)
    request.current_app = admin.site.name
    framed = {**admin.site.each_context(request), **context, "breadcrumbs": [(_("Not found"), "")]}
    return render(request, "staff/not_found.html", framed, status=404)
