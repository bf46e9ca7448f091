"""Tasks for system users that log in with a certificate (tls_client_auth, RFC 8705).

A certificate is removed, or gets an earlier last day, by the tasks for secrets: it is in the same
table.
"""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm
from identity.staff.framework.tasks import Task
from taxpayers.certificates.names import MAX_TEXT_LENGTH, NameKind
from taxpayers.models import Credential, SystemUser
from taxpayers.services import Author, register_client_certificate, use_certificate
from taxpayers.services.login_method.certificates import REGISTER_CLIENT_CERTIFICATE
from taxpayers.services.login_method.change import USE_CERTIFICATE

_KINDS = [
    ("", gettext_lazy("A certificate (PEM): its subject is registered")),
    (NameKind.SUBJECT_DN.value, gettext_lazy("Subject (RFC 4514)")),
    (NameKind.SAN_DNS.value, gettext_lazy("Alternative name: DNS")),
    (NameKind.SAN_URI.value, gettext_lazy("Alternative name: URI")),
    (NameKind.SAN_EMAIL.value, gettext_lazy("Alternative name: e-mail")),
]


class NameWidget(UnfoldAdminTextareaWidget):
    """Shows what was entered again, unless it is a private key."""

    def format_value(self, value: Any) -> str:
        return "" if "PRIVATE KEY" in str(value or "") else str(value or "")


class RegisterCertificateForm(TaskForm):
    kind = forms.ChoiceField(
        label=gettext_lazy("What is entered"),
        choices=_KINDS,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    text = forms.CharField(
        label=gettext_lazy("Certificate or name"),
        help_text=gettext_lazy(
            "As the operator of the ERP system sent it; never ask for the private key. A renewed"
            " certificate with the same name needs no new registration."
        ),
        max_length=MAX_TEXT_LENGTH,
        widget=NameWidget(attrs={"autocomplete": "off", "spellcheck": "false", "rows": 8}),
    )
    expires = LastDayField(
        label=gettext_lazy("Last day of the registration"),
        required=False,
        help_text=gettext_lazy(
            "Leave empty to use the standard lifetime of this service, usually one year."
        ),
    )


class UseCertificateForm(RegisterCertificateForm):
    reason = ReasonField()


def _name_in(data: dict[str, Any]) -> dict[str, Any]:
    """The text and its kind, as services take them."""
    return {"text": data["text"], "kind": NameKind(data["kind"]) if data["kind"] else None}


class RegisterClientCertificate(Task):
    operation = REGISTER_CLIENT_CERTIFICATE
    gives_access = True
    icon = "badge"
    form = RegisterCertificateForm

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> Credential:
        return register_client_certificate(
            system_user=record, expires_at=data["expires"], by=by, at=at, **_name_in(data)
        )

    def success_message(self, result: Credential) -> str:
        return _("The certificate with {name} is registered.").format(name=result.certificate_name)

    def next_record(self, result: Credential) -> SystemUser:
        return result.system_user


class UseCertificate(Task):
    operation = USE_CERTIFICATE
    gives_access = True
    button_label = gettext_lazy("Change to a certificate")
    icon = "badge"
    form = UseCertificateForm
    done = gettext_lazy("{name} logs in with a certificate now.")

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return use_certificate(
            system_user=record,
            expires_at=data["expires"],
            reason=data["reason"],
            by=by,
            at=at,
            **_name_in(data),
        )
