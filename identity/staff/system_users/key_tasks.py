"""Tasks for how a system user logs in: with a secret, or with private keys (contract 3).

A key is removed, or gets an earlier last day, by the tasks for secrets: it is in the same table.
"""

from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm
from identity.staff.framework.secret_once import (
    IssueOnceForm,
    SecretOnceTask,
    check_form_not_reused,
    newest_secret_id,
)
from identity.staff.framework.tasks import Task
from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.models import Credential, SystemUser
from taxpayers.services import (
    Author,
    IssuedSecret,
    register_client_keys,
    use_client_secret,
    use_private_key,
)
from taxpayers.services.login_method.change import USE_CLIENT_SECRET, USE_PRIVATE_KEY
from taxpayers.services.login_method.keys import REGISTER_CLIENT_KEY

_LAST_DAY_HELP = gettext_lazy(
    "Leave empty to use the standard lifetime of this service, usually one year."
)


class KeysWidget(UnfoldAdminTextareaWidget):
    """Shows nothing of what was entered: it could be a private key."""

    def format_value(self, value: Any) -> str:
        return ""


class KeysField(forms.CharField):
    """Public keys as text."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Public key"),
            help_text=gettext_lazy(
                "A JWK, a JWK Set or a PEM file, as the operator of the ERP system sent it. Never"
                " ask for the private key."
            ),
            max_length=MAX_KEYS_LENGTH,
            widget=KeysWidget(attrs={"autocomplete": "off", "spellcheck": "false", "rows": 8}),
        )


class RegisterKeyForm(TaskForm):
    keys = KeysField()
    expires = LastDayField(
        label=gettext_lazy("Last day of the key"), required=False, help_text=_LAST_DAY_HELP
    )


class UseKeyForm(RegisterKeyForm):
    reason = ReasonField()


class UseSecretForm(IssueOnceForm):
    expires = LastDayField(
        label=gettext_lazy("Last day of the new secret"), required=False, help_text=_LAST_DAY_HELP
    )
    reason = ReasonField()


class RegisterClientKey(Task):
    operation = REGISTER_CLIENT_KEY
    gives_access = True
    icon = "key"
    form = RegisterKeyForm

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> list[Credential]:
        return register_client_keys(
            system_user=record, keys=data["keys"], expires_at=data["expires"], by=by, at=at
        )

    def success_message(self, result: list[Credential]) -> str:
        return _("The key {kid} is registered.").format(kid=", ".join(key.kid for key in result))

    def next_record(self, result: list[Credential]) -> SystemUser:
        return result[0].system_user


class UsePrivateKey(Task):
    operation = USE_PRIVATE_KEY
    gives_access = True
    button_label = gettext_lazy("Change to a private key")
    icon = "key"
    form = UseKeyForm
    done = gettext_lazy("{name} logs in with a private key now.")

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return use_private_key(
            system_user=record,
            keys=data["keys"],
            expires_at=data["expires"],
            reason=data["reason"],
            by=by,
            at=at,
        )


class UseClientSecret(SecretOnceTask):
    operation = USE_CLIENT_SECRET
    gives_access = True
    button_label = gettext_lazy("Change to a secret")
    icon = "password"
    form = UseSecretForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {"newest": newest_secret_id(record)}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedSecret:
        check_form_not_reused(record, data)
        return use_client_secret(
            system_user=record,
            expires_at=data["expires"],
            reason=data["reason"],
            by=by,
            at=at,
        )
