"""A form whose CSRF token is that of an earlier session: its entries are shown again, not lost.

That happens when a user signs in again in another tab. The form is not carried out: what was
entered comes back in the form, to be checked and submitted by a person.
"""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.csrf import csrf_failure

from identity.staff.sessions.unsaved_entries import save_in_session


def expired_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    if _is_our_form(request) and save_in_session(request):
        response = HttpResponseRedirect(request.get_full_path())
        response.status_code = 303
        return response
    return csrf_failure(request, reason)


def _is_our_form(request: HttpRequest) -> bool:
    # Another site could otherwise fill in a form for an officer, who might submit it unread.
    own = f"{request.scheme}://{request.get_host()}"
    return (
        request.user.is_authenticated
        and request.headers.get("Origin") == own
        and request.path_info.startswith(reverse("admin:index"))
    )
