"""The forms of a second step: a passkey or security key, or a code with a limit of our own.

The libraries raise many kinds of errors for an answer of a key that is malformed or forged. Each of
them means that it is not the key of this person.
"""

from typing import Any

from allauth.account import adapter as account_adapter
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
from django.core.exceptions import ValidationError

from identity.staff.accounts.adapters import log_sign_in
from identity.staff.accounts.guesses import count_guess

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
        except Exception as fault:
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
