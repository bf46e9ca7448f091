"""The 400 for staff: a page with a way back; it names a filter that a list does not have."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views import defaults

from identity import errors as machines
from identity.staff.framework.unknown_filter import UnknownFilter
from identity.staff.not_found import STAFF_PATHS


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page below the paths of staff, with the sidebar for those signed in; elsewhere JSON."""
    if not request.path_info.startswith(STAFF_PATHS):
        return machines.bad_request(request, exception)
    user = getattr(request, "user", None)  # a request can be refused before its session is read
    if user is None or not user.is_staff:
        return defaults.bad_request(request, exception)
    context: dict[str, Any] = {"message": "", "list_url": ""}
    if isinstance(exception, UnknownFilter):
        text = _("This list has no filter with the name {name}.")
        context = {"message": text.format(name=exception.name), "list_url": exception.list_url}
    request.current_app = admin.site.name
    framed = {
        **admin.site.each_context(request),
        **context,
        "breadcrumbs": [(_("Bad request"), "")],
    }
    return render(request, "staff/framework/bad_request.html", framed, status=400)
