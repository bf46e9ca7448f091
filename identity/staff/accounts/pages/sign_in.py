"""The form of the sign-in page."""

from typing import Any

from allauth.account.forms import LoginForm
from django.utils.translation import gettext as _


class SignInForm(LoginForm):
    """Ready to type in: everybody sees it first each morning, and some have no mouse."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login = self.fields["login"]
        login.label = _("User name")
        login.widget.attrs |= {"autofocus": True, "placeholder": login.label}
