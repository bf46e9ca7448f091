"""May this secret, key or certificate go? And the task that revokes those of several system users.

Unused ones, or all after a leak.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.badges import UNUSED_AFTER, Tone, is_safe_to_revoke
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.tasks import Call, Data, Preview, Task
from taxpayers.models import Credential, RateLimitCounter, SystemUser
from taxpayers.moments import moment_text
from taxpayers.services import revoke_credential
from taxpayers.services.credential_changes import REVOKE_SECRETS


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a valid secret may be revoked, in one sentence."""

    tone: Tone
    text: str

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
    if newer is None:
        return Advice("warning", _("Keep it: it is the newest, and it is in use."))
    return Advice("warning", _("Keep it for now: it is in use."))


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


def _may_go(secret: Credential, at: datetime) -> str:
    if secret.last_used_at is not None:
        return _("It may go: it is no longer used.")
    if at - secret.created_at >= UNUSED_AFTER:
        return _("It may go: it was never used, and it is more than 30 days old.")
    return _("It may go: it was never used, and a newer one is in use.")


UNUSED, EVERY = "unused", "every"


class RevokeSecretsForm(TaskForm):
    """Which of the valid ones of each system user."""

    decides = ("which",)

    which = fields.RadioField(
        label=gettext_lazy("Which ones"),
        choices=[
            (UNUSED, gettext_lazy("Those that are safe to revoke: another one is in use instead")),
            (EVERY, gettext_lazy("Every valid one, used or not")),
        ],
        initial=UNUSED,
    )


class RevokeSecrets(Task):
    operation = REVOKE_SECRETS
    form = RevokeSecretsForm

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        live = [secret for secret in record.credentials.all() if secret.is_live(at)]
        before = _("Valid: {secrets}").format(secrets=_named(live)) if live else ""
        chosen = _chosen(record, data, at)
        if not chosen:
            none = self.unavailable_reason(record, at) or _("None of them is safe to revoke.")
            return Preview(before, refusal=none)
        remaining = [secret for secret in live if secret not in chosen]
        revoked = _("Revoked: {secrets}.").format(secrets=_named(chosen))
        if remaining:
            rest = _("Still valid: {secrets}.").format(secrets=_named(remaining))
        else:
            rest = _("Nothing else is valid: it cannot log in before it gets a new one.")
        return Preview(before, f"{revoked} {rest}", note=_note(record, chosen, at))

    @transaction.atomic
    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> SystemUser:
        for secret in _chosen(record, data, call["at"]):
            revoke_credential(credential=secret, reason=data["reason"], **call)
        return record


def _chosen(record: SystemUser, data: dict[str, Any], at: datetime) -> list[Credential]:
    """The secrets that this revokes; `data` may lack fields."""
    secrets = list(record.credentials.all())
    live = [secret for secret in secrets if secret.is_live(at)]
    if data.get("which") == EVERY:
        return live
    advised = ((secret, advice_on(secret, secrets, at)) for secret in live)
    return [secret for secret, advice in advised if advice is not None and advice.may_go]


def _note(record: SystemUser, chosen: list[Credential], at: datetime) -> str:
    secrets = list(record.credentials.all())
    used = [secret for secret in chosen if is_in_use(secret, secrets, at)]
    if not used:
        return last_login_text(record)
    return _("In use: {secrets}.").format(secrets=_named(used)) + " " + last_login_text(record)


def _named(secrets: list[Credential]) -> str:
    return ", ".join(secret.label for secret in secrets)


def last_login_text(record: SystemUser) -> str:
    """When it last got a token, in words: shows whether the change will be noticed."""
    usage: RateLimitCounter | None = getattr(record, "usage", None)
    if usage is None or usage.last_used_at is None:
        return _("It has never logged in.")
    return _("Last login: {moment}.").format(moment=moment_text(usage.last_used_at))
