"""The pages where staff change their own second steps: those of allauth, saved in the history."""

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.core.internal.httpkit import authenticated_user
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import AddWebAuthnView, EditWebAuthnView, RemoveWebAuthnView
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.staff.accounts.changes.second_steps import recorded_own_second_steps
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


class SetUpTotp(_SetUp, ActivateTOTPView):
    """An authenticator app (RFC 6238)."""


class RemoveTotp(_Recorded, DeactivateTOTPView):
    """Without the authenticator app."""


class SetUpPasskey(_SetUp, AddWebAuthnView):
    """A passkey or security key (WebAuthn level 2)."""

    initial = {"passwordless": True}  # what a phone or a laptop does well

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        form.fields["passwordless"].label = _("Sign in with this key alone, as a passkey")
        form.fields["passwordless"].help_text = _(
            "The fingerprint, face or PIN check of the key then replaces your password. Leave this"
            " empty if you want to enter your password as well."
        )
        return form


class RenamePasskey(_Recorded, EditWebAuthnView):
    """Another name for a passkey."""


class RemovePasskey(_Recorded, RemoveWebAuthnView):
    """Without this passkey."""


class NewRecoveryCodes(_Recorded, GenerateRecoveryCodesView):
    """Other recovery codes; the present ones stop working."""
