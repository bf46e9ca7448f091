"""Tasks for the secrets of a system user: issue another, set the last day, revoke (contract 3)."""

from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm
from identity.staff.framework.record_pages import Text
from identity.staff.framework.secret_once import (
    IssueOnceForm,
    SecretOnceTask,
    check_form_not_reused,
    newest_secret_id,
)
from identity.staff.framework.tasks import Task
from identity.staff.templatetags.staff import moment_text
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services import Author, IssuedSecret, issue_secret, retire_secret, revoke_secret
from taxpayers.services.secrets import describe_last_use

MAX_LIVE_SECRETS = 2  # contract 3


class RotateSecretForm(IssueOnceForm):
    expires = LastDayField(
        label=gettext_lazy("Last day of the new secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave empty to use the standard lifetime of this service, usually one year."
        ),
    )
    retire_old = LastDayField(
        label=gettext_lazy("Last day of the old secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave enough time to change the ERP system to the new secret. Leave empty to keep the"
            " expiry date of the old secret."
        ),
    )


class RotateSecret(SecretOnceTask):
    name = "rotate_secret"
    title = gettext_lazy("Issue another secret")
    button_label = gettext_lazy("Issue another secret")
    description = gettext_lazy(
        "This issues a second secret and shows it once. The current secret keeps working, so the"
        " ERP system can change to the new one without a break."
    )
    icon = "key"
    form = RotateSecretForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        live = [secret for secret in record.secrets.order_by("pk") if secret.is_live(at)]
        if len(live) < MAX_LIVE_SECRETS:
            return ""
        # Shown also after a reload of the page with a new secret: it must name that secret.
        return _(
            "There are already two secrets. {secret} was issued {moment}. First revoke the secret"
            " that is no longer used."
        ).format(secret=live[-1], moment=moment_text(live[-1].created_at))

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {"newest": newest_secret_id(record)}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedSecret:
        check_form_not_reused(record, data)
        return issue_secret(
            system_user=record,
            expires_at=data["expires"],
            retire_old_at=data["retire_old"],
            by=by,
            at=at,
        )


class SecretForm(TaskForm):
    """One of the live secrets, and a reason."""

    secret = forms.ChoiceField(label=gettext_lazy("Secret"), widget=UnfoldAdminSelectWidget)
    reason = ReasonField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        live = self.record.secrets.filter(slot__isnull=False).order_by("-pk")
        field.choices = [(str(secret.pk), _describe(secret)) for secret in live]


def _describe(secret: ClientSecret) -> str:
    return _("{secret}, created {moment}, {use}").format(
        secret=secret, moment=moment_text(secret.created_at), use=describe_last_use(secret)
    )


class _SecretTask(Task):
    icon = "key_off"
    has_button = False  # the page of the system user has a link beside each secret

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        if any(secret.is_live(at) for secret in record.secrets.all()):
            return ""
        return _("It has no valid secret.")

    def next_record(self, result: ClientSecret) -> SystemUser:
        return result.system_user


class RevokeSecret(_SecretTask):
    name = "revoke_secret"
    title = gettext_lazy("Revoke a secret")
    button_label = gettext_lazy("Revoke")
    description = gettext_lazy(
        "The secret stops working now. This cannot be undone. An ERP system that still uses it can"
        " no longer log in."
    )
    variant = "danger"
    form = SecretForm

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> ClientSecret:
        secret = record.secrets.get(pk=data["secret"])
        return revoke_secret(secret=secret, reason=data["reason"], by=by, at=at)

    def success_message(self, result: ClientSecret) -> str:
        return _("The secret {secret} is revoked.").format(secret=result)


class RetireSecretForm(SecretForm):
    last_day = LastDayField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Leave enough time to change the ERP system to another secret."),
    )
    field_order = ("secret", "last_day", "reason")


class RetireSecret(_SecretTask):
    name = "retire_secret"
    title = gettext_lazy("Set the last day of a secret")
    button_label = gettext_lazy("Set last day")
    description = gettext_lazy(
        "The secret stops working after this day, or earlier if it expires earlier."
    )
    icon = "event_busy"
    form = RetireSecretForm

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> ClientSecret:
        return retire_secret(
            secret=record.secrets.get(pk=data["secret"]),
            last_moment=data["last_day"],
            reason=data["reason"],
            by=by,
            at=at,
        )

    def success_message(self, result: ClientSecret) -> str:
        return _("The last day of the secret {secret} is set.").format(secret=result)
