"""Tasks for how a system user logs in: with a secret, private keys or a certificate (contract 3).

A key or certificate is revoked, or gets an earlier last day, by the tasks for secrets.
"""

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework import fields
from identity.staff.framework.secret_once import IssueOnceTask, NewSecretForm
from identity.staff.framework.tasks import Task, TaskForm, task
from taxpayers.certificates import MAX_TEXT_LENGTH
from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.services.login_method import change
from taxpayers.services.login_method.registration import (
    REGISTER_CLIENT_CERTIFICATE,
    REGISTER_CLIENT_KEY,
)


class KeysWidget(UnfoldAdminTextareaWidget):
    """Shows nothing of what was entered: it could be a private key."""

    def format_value(self, value: Any) -> str:
        return ""


PublicTextField = partial(
    forms.CharField,
    max_length=MAX_KEYS_LENGTH,
    required=False,
    widget=KeysWidget(attrs=fields.CODE | {"rows": 6}),
)


class TextOrFileForm(TaskForm):
    """A public text, of which the operator of the ERP system has sent a file or a copy."""

    text_field: ClassVar[str]
    file = forms.FileField(label=gettext_lazy("Or its file"), required=False)

    def clean(self) -> None:
        data, name = self.cleaned_data, self.text_field
        file = data.pop("file", None)
        if name in self.errors or "file" in self.errors:
            return
        if file is not None and data.get(name):
            self.add_error("file", _("Enter the text or choose a file, not both."))
        elif file is not None:
            try:
                data[name] = file.read(MAX_KEYS_LENGTH).decode()
            except UnicodeDecodeError:
                self.add_error("file", _("This file is no text: JWK, JWK Set or PEM."))
        if self.is_needed() == bool(data.get(name)) or self.errors:
            return
        if self.is_needed():
            self.add_error(name, _("Enter the text, or choose a file."))
        else:
            self.add_error(name, _("A secret needs none: leave it empty."))

    def is_needed(self) -> bool:
        return True


class KeyForm(TextOrFileForm):
    text_field = "keys"

    keys = PublicTextField(
        label=gettext_lazy("Public key"),
        help_text=gettext_lazy(
            "A JWK, a JWK Set or a PEM file, as the operator of the ERP system sent it. Never"
            " ask for the private key."
        ),
    )
    expires = fields.LifetimeField(label=gettext_lazy("Last day of the key"))
    reason = fields.CredentialReasonField()
    field_order = ("keys", "file")


class CertificateForm(TextOrFileForm):
    text_field = "certificate"

    certificate = PublicTextField(
        label=gettext_lazy("Certificate (PEM)"),
        help_text=gettext_lazy(
            "As the operator of the ERP system sent it; never ask for the private key. Its subject"
            " is registered: a renewed certificate with the same one needs no new registration."
        ),
        max_length=MAX_TEXT_LENGTH,
    )
    expires = fields.LifetimeField(label=gettext_lazy("Last day of the registration"))
    reason = fields.CredentialReasonField()
    field_order = ("certificate", "file")


RegisterClientKey = task(Task, REGISTER_CLIENT_KEY, gives_access=True, form=KeyForm)
RegisterClientCertificate = task(
    Task, REGISTER_CLIENT_CERTIFICATE, gives_access=True, form=CertificateForm
)
UsePrivateKey = task(Task, change.USE_PRIVATE_KEY, gives_access=True, form=KeyForm)
UseCertificate = task(Task, change.USE_CERTIFICATE, gives_access=True, form=CertificateForm)
UseClientSecret = task(
    IssueOnceTask, change.USE_CLIENT_SECRET, gives_access=True, form=NewSecretForm
)
