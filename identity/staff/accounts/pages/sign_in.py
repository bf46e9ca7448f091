"""The sign-in page: its form, and the way to it from the admin's own."""

from typing import Any

from allauth.account.forms import LoginForm
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache


class SignInForm(LoginForm):
    """Ready to type in: everybody sees it first each morning, and some have no mouse."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login = self.fields["login"]
        login.label = _("User name")
        login.widget.attrs |= {"autofocus": True, "placeholder": login.label}


@never_cache
def redirect_to_sign_in(request: HttpRequest) -> HttpResponse:
    """`/admin/login/`: to the sign-in, then to the page that was asked for."""
    target = request.GET.get(REDIRECT_FIELD_NAME, "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(target, reverse("account_login"))
    if not request.user.is_staff:
        raise PermissionDenied
    return redirect(target)
