"""The forms of the tasks for secrets: a new one, or which one, a confirmation, a reason."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm
from identity.staff.framework.secret_once import IssueOnceForm
from identity.staff.registry.limit_fields import NetworksField
from identity.staff.system_users.secret_advice import is_in_use
from taxpayers.models import Credential


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
    networks = NetworksField()


class SecretForm(TaskForm):
    """One valid secret, chosen by the link that led here, and a reason.

    `valid`: the secrets that can be chosen. `chosen`: the one that is, or None.
    """

    secret = forms.ChoiceField(widget=forms.HiddenInput)
    reason = ReasonField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.at = timezone.now()
        self.secrets: list[Credential] = list(self.record.credentials.order_by("-pk"))
        self.valid = [secret for secret in self.secrets if secret.is_live(self.at)]
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = [(str(secret.pk), str(secret)) for secret in self.valid]
        self.chosen = self._chosen()

    def _chosen(self) -> Credential | None:
        if not self.is_bound and "secret" not in self.initial and len(self.valid) == 1:
            self.initial["secret"] = str(self.valid[0].pk)
        named = self.data.get("secret") if self.is_bound else self.initial.get("secret")
        return next((secret for secret in self.valid if str(secret.pk) == named), None)


class RevokeSecretForm(SecretForm):
    """Asks for the last characters of a secret that is in use: it may be the wrong one."""

    hint = forms.CharField(
        label=gettext_lazy("Last characters"),
        help_text=gettext_lazy(
            "An ERP system uses it. To confirm that it is the right one, enter its last characters"
            " as they are shown above."
        ),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("secret", "hint", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is None or not is_in_use(self.chosen, self.secrets, self.at):
            del self.fields["hint"]

    def clean_hint(self) -> str:
        hint: str = self.cleaned_data["hint"].strip().lstrip("…")
        if self.chosen is not None and hint != self.chosen.hint:
            raise forms.ValidationError(
                _("These are not its last characters. Check that it is the right one.")
            )
        return hint


class RetireSecretForm(SecretForm):
    last_day = LastDayField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Leave enough time to change the ERP system to another one."),
    )
    field_order = ("secret", "last_day", "reason")
