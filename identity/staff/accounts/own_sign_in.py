"""The pages where staff change their own password and second steps, saved in the history."""

import logging
from typing import Any

from allauth.account.forms import ChangePasswordForm, SetPasswordForm
from allauth.account.internal.flows.login import record_authentication
from allauth.core.internal.httpkit import authenticated_user
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.mfa.webauthn.views import AddWebAuthnView
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from identity.staff.accounts.adapters import log_sign_in
from identity.staff.accounts.changes.sign_in import choose_password, recorded_own_second_steps
from identity.staff.accounts.required_first import has_to_choose, own_password_chosen
from identity.staff.framework.tasks import author
from identity.staff.models import StaffAccount


class _Recorded:
    """The change and its record are stored together."""

    request: HttpRequest

    def form_valid(self, form: Any) -> HttpResponse:
        account = StaffAccount.objects.get(pk=authenticated_user(self.request).pk)
        by = author(self.request)
        with recorded_own_second_steps(account=account, by=by, at=timezone.now()):
            response: HttpResponse = super().form_valid(form)  # type: ignore[misc]  # the view's own
        return response


class _SetUp(_Recorded):
    """Setting a factor up proves it: its code or its signature has just been checked."""

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        user = authenticated_user(self.request)
        record_authentication(self.request, user, "mfa", set_up=True)
        return response


def recorded(view: Any, mixin: type = _Recorded) -> Any:
    """This view of allauth; the change that it makes is saved in the history."""
    own: Any = type(view.__name__, (mixin, view), {})
    return own.as_view()


set_up_totp = recorded(ActivateTOTPView, _SetUp)  # an authenticator app (RFC 6238)


class SetUpPasskey(_SetUp, AddWebAuthnView):
    """A passkey or security key (WebAuthn level 2)."""

    initial = {"passwordless": True}  # what a phone or a laptop does well

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        form.fields["passwordless"].label = _("Sign in with this key only, as a passkey")
        form.fields["passwordless"].help_text = _(
            "The fingerprint, face or PIN check of the key then replaces your password. Leave this"
            " empty if you want to enter your password as well."
        )
        return form


def _asks_for_a_new_password(form: Any) -> None:
    new, again = form.fields["password1"], form.fields["password2"]
    next(iter(form.fields.values())).widget.attrs["autofocus"] = True
    for field in form.fields.values():
        del field.widget.attrs["placeholder"]  # the label says it
    new.label, again.label = _("Your new password"), _("The same password again")
    new.help_text = _(
        "At least 8 characters. Not your name, not only digits, not one that many people use."
    )


class NewPasswordForm(ChangePasswordForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["oldpassword"].label = _("Your present password")
        _asks_for_a_new_password(self)


class OwnPasswordForm(SetPasswordForm):
    def __init__(self, account: StaffAccount, data: Any = None) -> None:
        super().__init__(account, data)
        self.account = account
        _asks_for_a_new_password(self)

    def clean_password1(self) -> str:
        password: str = self.cleaned_data["password1"]
        if self.account.check_password(password):
            raise ValidationError(_("Choose another password than the first one."))
        return password


@login_required
@sensitive_post_parameters("password1", "password2")
def choose_own_password(request: HttpRequest) -> HttpResponse:
    """Only for a session that signed in with a first password: the old one is not asked again."""
    if not has_to_choose(request):
        return redirect("account_change_password")
    account = StaffAccount.objects.get(pk=authenticated_user(request).pk)
    form = OwnPasswordForm(account, request.POST or None)
    if request.method == "POST" and form.is_valid():
        choose_password(
            account=account,
            password=form.cleaned_data["password1"],
            by=author(request),
            at=timezone.now(),
        )
        update_session_auth_hash(request, account)
        own_password_chosen(request)
        log_sign_in("first password replaced", request, account.username, logging.INFO)
        messages.success(request, _("Your new password is saved."))
        return redirect("admin:index")
    return TemplateResponse(request, "account/own_password.html", {"form": form})
