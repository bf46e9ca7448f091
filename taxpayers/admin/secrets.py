"""Tasks on the secrets of a system user (contract 3)."""

from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from taxpayers.admin.forms import LastDayField, ReasonField, TaskForm
from taxpayers.admin.handover import HandoverTask, OnceForm, check_once, newest_secret
from taxpayers.admin.tasks import Task, Text
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services import Author, Issued, issue_secret, revoke_secret
from taxpayers.templatetags.staff import said

MOST_LIVE = 2  # contract 3
MOST_LISTED = 20


class RotateSecretForm(OnceForm):
    expires = LastDayField(
        label=gettext_lazy("Last day of the new secret"),
        required=False,
        help_text=gettext_lazy("Without a day: as long as the service is set to, usually a year."),
    )
    retire_old = LastDayField(
        label=gettext_lazy("Last day of the old secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave time to put the new one in place. Without a day the old one keeps its own end."
        ),
    )


class RotateSecret(HandoverTask):
    name = "rotate_secret"
    title = gettext_lazy("Issue another secret")
    button = gettext_lazy("Issue secret")
    says = gettext_lazy(
        "A second secret is issued and shown once. The present one goes on working, so that the"
        " ERP system can change over without a pause."
    )
    icon = "key"
    form = RotateSecretForm

    def refusal(self, record: SystemUser, at: datetime) -> Text:
        live = [secret for secret in record.secrets.all() if secret.is_live(at)]
        if len(live) < MOST_LIVE:
            return ""
        return _("There are two secrets already. Revoke the one that is no longer in use first.")

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {"newest": newest_secret(record)}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> Issued:
        check_once(record, data)
        return issue_secret(
            system_user=record,
            expires_at=data["expires"],
            retire_old_at=data["retire_old"],
            by=by,
            at=at,
        )


class RevokeSecretForm(TaskForm):
    secret = forms.ChoiceField(
        label=gettext_lazy("Secret"), widget=UnfoldAdminSelectWidget, required=True
    )
    reason = ReasonField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = [
            (
                str(secret.pk),
                _("{secret}, created {moment}").format(
                    secret=secret, moment=said(secret.created_at)
                ),
            )
            for secret in self.record.secrets.filter(revoked_at=None).order_by("-pk")[:MOST_LISTED]
        ]


class RevokeSecret(Task):
    name = "revoke_secret"
    title = gettext_lazy("Revoke a secret")
    button = gettext_lazy("Revoke secret")
    says = gettext_lazy(
        "The secret ends now and for good. An ERP system that still uses it cannot log in any more."
    )
    icon = "key_off"
    has_button = False
    variant = "danger"
    form = RevokeSecretForm

    def refusal(self, record: SystemUser, at: datetime) -> Text:
        if any(secret.is_live(at) for secret in record.secrets.all()):
            return ""
        return _("It has no live secret.")

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> ClientSecret:
        secret = record.secrets.get(pk=data["secret"])
        return revoke_secret(secret=secret, reason=data["reason"], by=by, at=at)

    def done(self, result: ClientSecret) -> str:
        return _("The secret {secret} is revoked.").format(secret=result)

    def shown_record(self, result: ClientSecret) -> SystemUser:
        return result.system_user
