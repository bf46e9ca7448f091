"""The 403, 404 and 400 for staff: a page with a way back, and what the list or record lacks."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views import defaults

from identity import errors as machines
from identity.staff.display import STAFF_PATHS
from identity.staff.framework.lists import RecordNotFound, UnknownFilter, page_frame


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page below the paths of staff, with the sidebar for those signed in; elsewhere JSON."""
    if not request.path_info.startswith(STAFF_PATHS):
        return machines.not_found(request, exception)
    context = {"message": str(exception) if isinstance(exception, RecordNotFound) else ""}
    if not _is_page_of_staff(request):
        return render(request, "404.html", context, status=404)
    framed = page_frame(request, (_("Not found"), "")) | context
    return render(request, "staff/framework/not_found.html", framed, status=404)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """With the sidebar for those signed in, who go on from there."""
    if not _is_page_of_staff(request):
        return defaults.permission_denied(request, exception)
    framed = page_frame(request, (_("Not allowed"), ""))
    return render(request, "staff/framework/not_allowed.html", framed, status=403)


def _is_page_of_staff(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and match.app_name == "admin" and request.user.is_staff


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
    framed = page_frame(request, (_("Bad request"), "")) | context
    return render(request, "staff/framework/bad_request.html", framed, status=400)
