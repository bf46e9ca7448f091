"""A second factor is required outside the demo: every session needs one."""

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from identity.middleware import Handler

_FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]


def require_second_factor(get_response: Handler) -> Handler:
    """Redirects staff without a second factor to set one up before they see any other page.

    Only a session that proved or set up a factor is accepted: not one that was opened by password
    before the owner of the account set up theirs.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        user = request.user
        if not settings.SECOND_FACTOR_REQUIRED or not user.is_authenticated:
            return get_response(request)
        if is_mfa_enabled(user, _FACTORS):
            is_proven = _has_proven_factor(request, user)
            return get_response(request) if is_proven else _sign_in_again(request)
        if request.path_info.startswith(reverse("account_login")):
            return get_response(request)  # the pages where one is set up
        messages.info(
            request,
            _("Before you continue, set up a second step for your sign-in. Choose one of these."),
        )
        return redirect("mfa_index")

    return middleware


def _sign_in_again(request: HttpRequest) -> HttpResponse:
    logout(request)
    messages.info(request, _("Sign in again, with your second step."))
    return redirect("account_login")


def _has_proven_factor(request: HttpRequest, user: AbstractBaseUser) -> bool:
    records = get_authentication_records(request, user)
    return any(record["method"] == "mfa" for record in records)
