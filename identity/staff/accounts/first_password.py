"""Who signed in with a first password chooses another one before any other page opens.

The session remembers it, so no page costs a query: a first password that is set later ends all
sessions of the account.
"""

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from identity.middleware import Handler
from identity.staff.models import FirstPassword

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
