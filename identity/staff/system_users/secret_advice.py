"""May this secret go? The answer in words, from the last use of each valid secret (contract 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from identity.staff.display import moment
from identity.staff.framework.badges import UNUSED_AFTER, Tone, is_safe_to_revoke
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
