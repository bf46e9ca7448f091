"""The 400 for staff: Django's own page, as nobody gets there by a link or a form of ours."""

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from identity import errors as machines
from identity.staff.not_found import STAFF_PATHS


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page below the paths of staff; elsewhere JSON."""
    if request.path_info.startswith(STAFF_PATHS):
        return defaults.bad_request(request, exception)
    return machines.bad_request(request, exception)
