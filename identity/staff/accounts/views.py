"""The doors to the admin's own sign-in pages, which lead to ours."""

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache


@never_cache
def enter(request: HttpRequest) -> HttpResponse:
    """`/admin/login/`: to the sign-in, and back to where the person wanted to go."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
        wanted = reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(wanted, reverse("account_login"))
    if not request.user.is_staff:
        raise PermissionDenied
    return redirect(wanted)
