"""The 404 for staff: a page with a way back."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from identity import errors as machines
from identity.staff.framework.not_found import RecordNotFound

STAFF_PATHS = ("/admin/", "/signin/")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page below the paths of staff, with the sidebar for those signed in; elsewhere JSON."""
    if not request.path_info.startswith(STAFF_PATHS):
        return machines.not_found(request, exception)
    context = {"message": str(exception) if isinstance(exception, RecordNotFound) else ""}
    match = request.resolver_match
    if match is None or match.app_name != "admin" or not request.user.is_staff:
        return render(request, "404.html", context, status=404)
    request.current_app = admin.site.name
    framed = {**admin.site.each_context(request), **context, "breadcrumbs": [(_("Not found"), "")]}
    return render(request, "staff/framework/not_found.html", framed, status=404)
