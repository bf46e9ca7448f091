"""The forms of the tasks for protected APIs."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.framework.badges import CHANGED_OVER_AFTER
from identity.staff.framework.forms import LastDayField, NameField, ReasonField, TaskForm
from identity.staff.framework.secret_once import IssueOnceForm
from taxpayers.moments import format_moment
from tokens.models import ProtectedApiSecret
from tokens.protected_apis.registration import live_secrets

_STANDARD_LIFETIME = gettext_lazy(
    "Leave empty to use the standard lifetime of this service, usually one year."
)


def _audiences() -> Iterable[tuple[str, str]]:
    names = sorted({scope["audience"] for scope in settings.SCOPES.values()})
    return [(name, name) for name in names]


class RegisterApiForm(TaskForm):
    name = NameField(label=gettext_lazy("Name of the API"))
    audience = forms.ChoiceField(
        label=gettext_lazy("Audience"),
        choices=_audiences,
        help_text=gettext_lazy("Only tokens for this audience are active for the API."),
        widget=UnfoldAdminSelectWidget,
    )
    secret_expires = LastDayField(
        label=gettext_lazy("Last day of the secret"), required=False, help_text=_STANDARD_LIFETIME
    )
    reason = ReasonField()


class RotateApiForm(IssueOnceForm):
    expires = LastDayField(
        label=gettext_lazy("Last day of the new secret"),
        required=False,
        help_text=_STANDARD_LIFETIME,
    )
    retire_old = LastDayField(
        label=gettext_lazy("Last day of the old secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave enough time to change the API to the new secret. Leave empty to keep the expiry"
            " date of the old secret."
        ),
    )
    reason = ReasonField()


class RevokeApiSecretForm(TaskForm):
    """One of the valid secrets.

    `valid`: those that can be chosen, the oldest first; `in_use`: those of them with which the API
    asked during the last day.
    """

    secret = forms.ChoiceField(label=gettext_lazy("Secret"), widget=UnfoldAdminSelectWidget)
    reason = ReasonField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        at = timezone.now()
        self.valid = live_secrets(self.record, at)
        self.in_use = [secret for secret in self.valid if _is_in_use(secret, at)]
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = [(str(secret.pk), _label(secret)) for secret in self.valid]


def _is_in_use(secret: ProtectedApiSecret, at: datetime) -> bool:
    return secret.last_used_at is not None and at - secret.last_used_at < CHANGED_OVER_AFTER


def _label(secret: ProtectedApiSecret) -> str:
    text = _("{secret}, issued {issued}, valid until {end}, last used {used}")
    if secret.last_used_at is None:
        text = _("{secret}, issued {issued}, valid until {end}, no use recorded")
    return text.format(
        secret=secret,
        issued=format_moment(secret.created_at),
        end=format_moment(secret.expires_at),
        used=format_moment(secret.last_used_at) if secret.last_used_at else "",
    )
