"""The forms for a code of an authenticator app or a recovery code, with a limit of our own."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm

from identity.staff.accounts.adapters import log_sign_in
from identity.staff.accounts.guesses import count_guess


class _Counted:
    """Counts each code before it is checked."""

    user: Any

    def clean_code(self) -> str:
        name = self.user.get_username()
        guess = count_guess(context.request, "code", name)
        if guess is None:
            log_sign_in("locked out", context.request, name)
            raise get_adapter().validation_error("too_many_login_attempts")
        code: str = super().clean_code()  # type: ignore[misc]  # the form's own
        guess.give_back()
        return code


class SignInCode(_Counted, AuthenticateForm):
    """The second step of a sign-in."""


class ConfirmationCode(_Counted, ReauthenticateForm):
    """A confirmation, before a second step is changed."""
