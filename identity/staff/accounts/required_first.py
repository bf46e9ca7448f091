"""What a session must have before any page opens: a second step, and a password of its owner.

The session remembers that a first password must be replaced, so no page costs a query: one that is
set later ends all sessions of the account.
"""

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.staff.models import FirstPassword
from tokens.http import Handler

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
            if any(one["method"] == "mfa" for one in get_authentication_records(request, user)):
                return get_response(request)
            logout(request)
            messages.info(request, _("Sign in again, with your second step."))
            return redirect("account_login")
        if request.path_info.startswith(reverse("account_login")):
            return get_response(request)  # the pages where one is set up
        messages.info(
            request,
            _("Before you continue, set up a second step for your sign-in. Choose one of these."),
        )
        return redirect("mfa_index")

    return middleware


_MUST_CHOOSE = "must_choose_password"
# Also reached before the first password is replaced: the page where it is chosen, and the way out.
_OPEN = ("choose_own_password", "account_logout", "set_language")


def is_first_password_expired(user: AbstractBaseUser) -> bool:
    """Whether it still has its first password, and too late."""
    return FirstPassword.objects.filter(user_id=user.pk, expires_at__lt=timezone.now()).exists()


def require_own_password(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Called at each sign-in."""
    if FirstPassword.objects.filter(user_id=user.pk).exists():
        request.session[_MUST_CHOOSE] = True


def own_password_chosen(request: HttpRequest) -> None:
    """Every page opens again."""
    request.session.pop(_MUST_CHOOSE, None)


def has_to_choose(request: HttpRequest) -> bool:
    """Whether this session must choose a password first."""
    return bool(request.session.get(_MUST_CHOOSE))


def redirect_to_own_password(get_response: Handler) -> Handler:
    """Leads every page to the one where the password is chosen."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_authenticated or not has_to_choose(request):
            return get_response(request)
        if request.path_info in {reverse(name) for name in _OPEN}:
            return get_response(request)
        return redirect("choose_own_password")

    return middleware
