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
from identity.staff.framework.record_pages import Text
from identity.staff.framework.secret_once import (
    IssueOnceForm,
    SecretOnceTask,
    check_form_not_reused,
    newest_secret_id,
)
from identity.staff.framework.tasks import Task
from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.models import MAX_LIVE_CREDENTIALS, Credential, SystemUser
from taxpayers.services import (
    Author,
    IssuedSecret,
    register_client_keys,
    use_client_secret,
    use_private_key,
)

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
    name = "register_client_key"
    gives_access = True
    title = gettext_lazy("Register a new key")
    button_label = gettext_lazy("Register a new key")
    description = gettext_lazy(
        "A key that is valid now keeps working, so that the ERP system can change to the new one"
        " without a break. Then remove the old one."
    )
    icon = "key"
    form = RegisterKeyForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        if not record.uses_key:
            return _("It does not log in with a private key. First change how it logs in.")
        live = [key for key in record.credentials.all() if key.is_live(at)]
        if len(live) < MAX_LIVE_CREDENTIALS:
            return ""
        return _("There are already two keys. First remove the one that is no longer used.")

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
    name = "use_private_key"
    action = "change_login_method"
    gives_access = True
    title = gettext_lazy("Log in with a private key")
    button_label = gettext_lazy("Change to a private key")
    description = gettext_lazy(
        "From now on it logs in with private_key_jwt only. Its secrets or certificates are revoked"
        " at this moment: agree with the operator of the ERP system when to do it."
    )
    icon = "key"
    form = UseKeyForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        return _("It logs in with a private key already.") if record.uses_key else ""

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

    def success_message(self, result: SystemUser) -> str:
        return _("{name} logs in with a private key now.").format(name=result)


class UseClientSecret(SecretOnceTask):
    name = "use_client_secret"
    action = "change_login_method"
    gives_access = True
    title = gettext_lazy("Log in with a secret")
    button_label = gettext_lazy("Change to a secret")
    description = gettext_lazy(
        "Its keys or certificates are removed at this moment, and the next page shows its new"
        " secret once. A private key is safer: nothing that it sends can be used again."
    )
    icon = "password"
    form = UseSecretForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        has_none = record.uses_key or record.uses_certificate
        return "" if has_none else _("It logs in with a secret already.")

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
