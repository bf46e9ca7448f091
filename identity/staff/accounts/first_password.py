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
_ASKED_FOR = "asked_for_before_own_password"
_LONGEST_ADDRESS = 2_000
# Also reached before the first password is replaced: the page where it is chosen, and the way out.
_OPEN = ("choose_own_password", "account_logout", "set_language")


def is_first_password_expired(user: AbstractBaseUser) -> bool:
    """Whether it still has its first password, and too late."""
    return FirstPassword.objects.filter(user_id=user.pk, expires_at__lt=timezone.now()).exists()


def require_own_password(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Called at each sign-in."""
    if FirstPassword.objects.filter(user_id=user.pk).exists():
        request.session[_MUST_CHOOSE] = True


def own_password_chosen(request: HttpRequest) -> str:
    """Every page opens again. Returns the address of the one that was asked for; empty: none."""
    request.session.pop(_MUST_CHOOSE, None)
    address: str = request.session.pop(_ASKED_FOR, "")
    return address


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
        if _is_page(request):
            request.session[_ASKED_FOR] = request.get_full_path()
        return redirect("choose_own_password")

    return middleware


def _is_page(request: HttpRequest) -> bool:
    """Whether the address can be opened again: a page of our own, not what a script asks for."""
    return (
        request.method == "GET"
        and request.headers.get("X-Requested-With") != "XMLHttpRequest"
        and request.path_info.startswith(reverse("admin:index"))
        and len(request.get_full_path()) <= _LONGEST_ADDRESS
    )
