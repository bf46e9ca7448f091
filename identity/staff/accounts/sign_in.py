"""The sign-in pages: the way to them, their context, and their forms, with limits of our own."""

from typing import Any

from allauth.account import adapter as account_adapter
from allauth.account.forms import LoginForm
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from unfold.settings import get_config

from identity.staff.accounts.adapters import log_sign_in, passkey_host
from identity.staff.accounts.guesses import count_guess
from identity.staff.accounts.pages.state import why_it_only_reads
from identity.staff.accounts.permissions import StaffBackend
from identity.staff.models import StaffAccount
from identity.staff.navigation import environment

_MAX_LENGTH = 16 * 1024


class _CredentialField(forms.JSONField):
    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value if len(value or "") <= _MAX_LENGTH else "")
        except (RecursionError, ValueError):  # deeper, or with longer numbers, than Python reads
            raise get_adapter().validation_error("incorrect_code") from None


class _AnyAnswer:
    """Refuses what is not the answer of a key."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields: dict[str, forms.Field]
        self.fields["credential"] = _CredentialField()

    def clean_credential(self) -> Authenticator:
        try:
            return super().clean_credential()  # type: ignore[misc,no-any-return]  # the form's own
        except ValidationError:
            raise
        except Exception as fault:  # the libraries raise many kinds for a forged answer
            raise get_adapter().validation_error("incorrect_code") from fault


class PasskeySignIn(_AnyAnswer, LoginWebAuthnForm):
    """A sign-in by passkey, without a password."""


class KeySignIn(_AnyAnswer, AuthenticateWebAuthnForm):
    """The second step of a sign-in."""


class KeyConfirmation(_AnyAnswer, ReauthenticateWebAuthnForm):
    """A confirmation, before a second step is changed."""


class _Counted:
    """Counts each code before it is checked."""

    user: Any

    def clean_code(self) -> str:
        name = self.user.get_username()
        guess = count_guess(context.request, "code", name)
        if guess is None:
            log_sign_in("locked out", context.request, name)
            raise account_adapter.get_adapter().validation_error("too_many_login_attempts")
        try:
            code: str = super().clean_code()  # type: ignore[misc]  # the form's own
        except ValidationError:
            log_sign_in("sign-in failed", context.request, name)
            raise
        guess.give_back()
        return code


class SignInCode(_Counted, AuthenticateForm):
    """The second step of a sign-in."""


class ConfirmationCode(_Counted, ReauthenticateForm):
    """A confirmation, before a second step is changed."""


class SignInForm(LoginForm):
    """Ready to type in: everybody sees it first each morning, and some have no mouse."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login = self.fields["login"]
        login.label = _("User name")
        login.widget.attrs |= {"autofocus": True, "placeholder": login.label}


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


def sign_in(request: HttpRequest) -> dict[str, Any]:
    """The context of `templates/allauth/`; empty for every other page."""
    match = request.resolver_match
    if match is not None and match.app_name == "admin":
        user = request.user
        is_limited = isinstance(user, StaffAccount) and StaffBackend().only_reads(user)
        why = why_it_only_reads(user) if is_limited else ""  # type: ignore[arg-type]  # see above
        return {"environment": environment(), "only_reads": why}
    look = get_config()
    return {
        "site_title": look["SITE_TITLE"],
        "colors": look["COLORS"],
        "border_radius": look.get("BORDER_RADIUS"),
        "environment": environment(),
        "is_demo": settings.IS_EMBEDDED,
        "passkey_host": passkey_host(),
        "staff_url": settings.STAFF_URL,
    }
