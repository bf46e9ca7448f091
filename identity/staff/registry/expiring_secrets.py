"""The end of a secret: now, or on a day (contract 3)."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm
from identity.staff.framework.record_pages import Text
from identity.staff.framework.tasks import Task
from identity.staff.templatetags.staff import format_moment
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services import Author, retire_secret, revoke_secret
from taxpayers.services.secrets import describe_last_use


class SecretForm(TaskForm):
    """Which of its live secrets, and why."""

    secret = forms.ChoiceField(label=gettext_lazy("Secret"), widget=UnfoldAdminSelectWidget)
    reason = ReasonField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        live = self.record.secrets.filter(slot__isnull=False).order_by("-pk")
        field.choices = [(str(secret.pk), _in_words(secret)) for secret in live]


def _in_words(secret: ClientSecret) -> str:
    return _("{secret}, created {moment}, {use}").format(
        secret=secret, moment=format_moment(secret.created_at), use=describe_last_use(secret)
    )


class _EndSecret(Task):
    icon = "key_off"
    has_button = False  # the page of the system user has a link beside each secret

    def refusal(self, record: SystemUser, at: datetime) -> Text:
        if any(secret.is_live(at) for secret in record.secrets.all()):
            return ""
        return _("It has no live secret.")

    def shown_record(self, result: ClientSecret) -> SystemUser:
        return result.system_user


class RevokeSecret(_EndSecret):
    name = "revoke_secret"
    title = gettext_lazy("Revoke a secret")
    button = gettext_lazy("Revoke")
    says = gettext_lazy(
        "The secret ends now and for good. An ERP system that still uses it cannot log in any more."
    )
    variant = "danger"
    form = SecretForm

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> ClientSecret:
        secret = record.secrets.get(pk=data["secret"])
        return revoke_secret(secret=secret, reason=data["reason"], by=by, at=at)

    def done(self, result: ClientSecret) -> str:
        return _("The secret {secret} is revoked.").format(secret=result)


class RetireSecretForm(SecretForm):
    last_day = LastDayField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Time enough for the ERP system to change over to another one."),
    )
    field_order = ("secret", "last_day", "reason")


class RetireSecret(_EndSecret):
    name = "retire_secret"
    title = gettext_lazy("Retire a secret")
    button = gettext_lazy("Retire")
    says = gettext_lazy("The secret ends on that day, unless it ends before.")
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

    def done(self, result: ClientSecret) -> str:
        return _("The last day of the secret {secret} is set.").format(secret=result)
