"""May this secret go? And the forms of the tasks for secrets (contract 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment
from identity.staff.framework.badges import UNUSED_AFTER, Tone, is_safe_to_revoke
from identity.staff.framework.forms import LastCharactersField, LastDayField, TaskForm
from identity.staff.framework.secret_once import ReplacingSecretForm
from identity.staff.registry.issue_credentials import NetworksField
from taxpayers.models import Credential


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a valid secret may be revoked, in one sentence."""

    tone: Tone
    text: str | SafeString

    @property
    def may_go(self) -> bool:
        return self.tone == "good"


def is_in_use(secret: Credential, secrets: Sequence[Credential], at: datetime) -> bool:
    """Whether an ERP system probably logs in with it; `secrets`: all of the system user."""
    last = secret.last_used_at
    if last is None or not secret.is_live(at) or at - last >= UNUSED_AFTER:
        return False
    return not is_safe_to_revoke(secret, list(secrets), at)


def others_of(secret: Credential, secrets: Sequence[Credential], at: datetime) -> list[Credential]:
    """The other valid secrets of the system user: what remains without this one."""
    return [other for other in secrets if other.pk != secret.pk and other.is_live(at)]


def advice_on(secret: Credential, secrets: Sequence[Credential], at: datetime) -> Advice | None:
    """The advice on a valid secret; None for one that has ended."""
    if not secret.is_live(at):
        return None
    others = others_of(secret, secrets, at)
    if not others:
        return _advice_on_the_only_one(secret, at)
    if is_safe_to_revoke(secret, list(secrets), at):
        return Advice("good", _may_go(secret, at))
    if secret.last_used_at is None:
        text = _("Not used yet. Keep it, if the client is about to change to it.")
        return Advice("neutral", text)
    newer = next((other for other in others if other.created_at > secret.created_at), None)
    used = _("Keep it for now: it is in use, last {moment}.")
    if newer is None:
        used = _("Keep it: it is the newest, and it is in use, last {moment}.")
    return Advice("warning", format_html(used, moment=moment(secret.last_used_at)))


def _advice_on_the_only_one(secret: Credential, at: datetime) -> Advice:
    if is_in_use(secret, [secret], at):
        return Advice(
            "warning",
            _(
                "Keep it: it is in use, and nothing else is valid. To change it, issue or register"
                " a new one first."
            ),
        )
    return Advice("neutral", _("Nothing else is valid. Without it, the client cannot log in."))


def _may_go(secret: Credential, at: datetime) -> str | SafeString:
    if secret.last_used_at is not None:
        return format_html(_("It may go: last used {moment}."), moment=moment(secret.last_used_at))
    if at - secret.created_at >= UNUSED_AFTER:
        return _("It may go: it was never used, and it is more than 30 days old.")
    return _("It may go: it was never used, and a newer one is in use.")


class RotateSecretForm(ReplacingSecretForm):
    networks = NetworksField()
    field_order = ("expires", "retire_old", "networks", "reason")


class SecretForm(TaskForm):
    """One valid secret, chosen by the link that led here, and a reason.

    `valid`: the secrets that can be chosen. `chosen`: the one that is, or None.
    """

    secret = forms.ChoiceField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.at = timezone.now()
        self.secrets: list[Credential] = list(self.record.credentials.order_by("-pk"))
        self.valid = [secret for secret in self.secrets if secret.is_live(self.at)]
        choices = [(str(secret.pk), str(secret)) for secret in self.valid]
        self.fields["secret"].choices = choices  # type: ignore[attr-defined]  # it has some
        self.chosen = self._chosen()

    def _chosen(self) -> Credential | None:
        if not self.is_bound and "secret" not in self.initial and len(self.valid) == 1:
            self.initial["secret"] = str(self.valid[0].pk)
        named = self.data.get("secret") if self.is_bound else self.initial.get("secret")
        return next((secret for secret in self.valid if str(secret.pk) == named), None)


class RevokeSecretForm(SecretForm):
    """Asks for the last characters of a secret that is in use: it may be the wrong one."""

    hint = LastCharactersField(
        gettext_lazy("Last characters"),
        gettext_lazy(
            "An ERP system uses it. To confirm that it is the right one, enter its last characters"
            " as they are shown above."
        ),
    )
    field_order = ("secret", "hint", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is None or not is_in_use(self.chosen, self.secrets, self.at):
            del self.fields["hint"]
        else:
            self.fields["hint"].expected = self.chosen.hint  # type: ignore[attr-defined]  # it has one


class RetireSecretForm(SecretForm):
    last_day = LastDayField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Leave enough time to change the ERP system to another one."),
    )
    field_order = ("secret", "last_day", "reason")


class ChangeSecretForm(SecretForm):
    networks = NetworksField()
    field_order = ("secret", "networks", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is not None:
            self.initial["networks"] = "\n".join(self.chosen.allowed_networks.split())
