"""May a secret, key or certificate go? And the task that revokes those of several system users."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.badges import CHANGED_OVER_AFTER, Tone, badge_of_credential
from identity.staff.framework.lists import Context
from identity.staff.framework.tasks import Call, Data, Preview, Task, TaskForm
from taxpayers.models import Credential, RateLimitCounter, SystemUser
from taxpayers.moments import moment_text
from taxpayers.services import revoke_credential
from taxpayers.services.credential_changes import REVOKE_SECRETS

UNUSED_AFTER = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a valid secret may be revoked, in one sentence."""

    tone: Tone
    text: str

    @property
    def may_go(self) -> bool:
        return self.tone == "good"


def is_safe_to_revoke(secret: Credential, secrets: Sequence[Credential], at: datetime) -> bool:
    """Whether this live secret is probably no longer used; `secrets`: all of the system user."""
    if not secret.is_live(at):
        return False
    last = secret.last_used_at or secret.created_at
    if at - last >= UNUSED_AFTER:
        return True
    return any(
        other.created_at > secret.created_at
        and other.last_used_at is not None
        and other.last_used_at - last >= CHANGED_OVER_AFTER
        for other in others_of(secret, secrets, at)
    )


def is_in_use(secret: Credential, secrets: Sequence[Credential], at: datetime) -> bool:
    """Whether an ERP system probably logs in with it."""
    is_used = secret.is_live(at) and secret.last_used_at is not None
    return is_used and not is_safe_to_revoke(secret, secrets, at)


def others_of(secret: Credential, secrets: Sequence[Credential], at: datetime) -> list[Credential]:
    """The other valid secrets of the system user: what remains without this one."""
    return [other for other in secrets if other.pk != secret.pk and other.is_live(at)]


def advice_on(secret: Credential, secrets: Sequence[Credential], at: datetime) -> Advice | None:
    """The advice on a valid secret; None for one that has ended."""
    if not secret.is_live(at):
        return None
    others = others_of(secret, secrets, at)
    if not others and is_in_use(secret, secrets, at):
        text = _(
            "Keep it: it is in use, and nothing else is valid. To change it, issue or register"
            " a new one first."
        )
        return Advice("warning", text)
    if not others:
        text = _("Nothing else is valid. Without it, the client cannot log in.")
        return Advice("neutral", text)
    if is_safe_to_revoke(secret, secrets, at):
        return Advice("good", _may_go(secret, at))
    if secret.last_used_at is None:
        text = _("Not used yet. Keep it, if the client is about to change to it.")
        return Advice("neutral", text)
    if any(other.created_at > secret.created_at for other in others):
        return Advice("warning", _("Keep it for now: it is in use."))
    return Advice("warning", _("Keep it: it is the newest, and it is in use."))


def _may_go(secret: Credential, at: datetime) -> str:
    if secret.last_used_at is not None:
        return _("It may go: it is no longer used.")
    if at - secret.created_at >= UNUSED_AFTER:
        return _("It may go: it was never used, and it is more than 30 days old.")
    return _("It may go: it was never used, and a newer one is in use.")


def shown_secret(secret: Credential, secrets: Sequence[Credential], at: datetime) -> Context:
    """What the pages say of it besides what uses it."""
    return {
        "row": secret,
        "state": badge_of_credential(secret, at),
        "is_in_use": is_in_use(secret, secrets, at),
        "advice": advice_on(secret, secrets, at),
    }


UNUSED, EVERY = "unused", "every"


class RevokeSecretsForm(TaskForm):
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
            return Preview(before, refusal=_("None of them is safe to revoke."))
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
    return [one for one in live if (advice := advice_on(one, secrets, at)) and advice.may_go]


def _note(record: SystemUser, chosen: list[Credential], at: datetime) -> str:
    secrets = list(record.credentials.all())
    used = [secret for secret in chosen if is_in_use(secret, secrets, at)]
    in_use = _("In use: {secrets}.").format(secrets=_named(used)) + " " if used else ""
    return in_use + last_login_text(record)


def _named(secrets: list[Credential]) -> str:
    return ", ".join(secret.label for secret in secrets)


def last_login_text(record: SystemUser) -> str:
    """When it last got a token, in words: shows whether the change will be noticed."""
    usage: RateLimitCounter | None = getattr(record, "usage", None)
    if usage is None or usage.last_used_at is None:
        return _("It has never logged in.")
    return _("Last login: {moment}.").format(moment=moment_text(usage.last_used_at))
