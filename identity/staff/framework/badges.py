"""The state of a record as a badge and a sentence; `taxpayers.rules` decides the state."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.display import moment
from taxpayers.facts.validity import is_in_force, is_over
from taxpayers.facts.values import PermissionFacts
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import RegistryReason
from taxpayers.sandbox.clients import sandbox_name
from taxpayers.standing.loaded_rows import standing_of_row
from taxpayers.standing.standing import Standing
from tokens.models import ProtectedApiSecret

Tone = Literal["good", "bad", "warning", "neutral"]
SOON = timedelta(days=30)
# An ERP system logs in every hour: after one day with only the new secret it has changed over.
CHANGED_OVER_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Badge:
    """One word, its colour, and a sentence: since or until when, who did it and why."""

    word: str | Promise
    tone: Tone
    sentence: str | SafeString = ""
    also: tuple["Badge", ...] = ()  # what else is so at the same time

    @property
    def html(self) -> SafeString:
        words = ((badge.tone, badge.word) for badge in (self, *self.also))
        return format_html_join(" ", '<span class="badge badge-{}">{}</span>', words)

    @property
    def is_good(self) -> bool:
        return self.tone in ("good", "warning")


ACTIVE = gettext_lazy("Active")
NOT_ACTIVE = gettext_lazy("Not active")
BLOCKED = gettext_lazy("Blocked")
NO_VALID_SECRET = gettext_lazy("No valid secret")
TAXPAYER_NOT_ACTIVE = gettext_lazy("Taxpayer not active")
EXPIRED = gettext_lazy("Expired")
REVOKED = gettext_lazy("Revoked")
PENDING = gettext_lazy("Not yet valid")
VALID = gettext_lazy("Valid")
ENDS_SOON = gettext_lazy("Ends soon")
SANDBOX = gettext_lazy("Sandbox")


def badge_of_taxpayer(row: Taxpayer, _at: datetime) -> Badge:
    """Active or not."""
    if row.is_active:
        return Badge(ACTIVE, "good")
    return Badge(NOT_ACTIVE, "bad", _("Its system users cannot log in."))


def badge_of_intermediary(row: Intermediary, at: datetime) -> Badge:
    """Active, not active or expired."""
    if not row.is_active:
        return Badge(NOT_ACTIVE, "bad", _("It cannot act for other taxpayers."))
    if is_over(row.active_until, at):
        return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), row.active_until))
    return until_badge(ACTIVE, row.active_until, at)


def badge_of_system_user(row: SystemUser, at: datetime) -> Badge:
    """What a login for its own taxpayer would get now. Load many rows `with_credentials`."""
    badge = _badge_of_logins(row, at)
    if not sandbox_name(row.client_id):
        return badge
    text = _("A client of the sandbox: everybody has its secret. Do not change it.")
    sentence = format_html("{} {}", badge.sentence, text)
    return replace(badge, sentence=sentence, also=(*badge.also, Badge(SANDBOX, "neutral")))


def _badge_of_logins(row: SystemUser, at: datetime) -> Badge:
    standing = standing_of_row(row, at)
    if standing.gets_token:
        return _active(row, standing, at)
    found = [_badge_of_refusal(row, refused.reason) for refused in standing.refusals]
    if not standing.valid_credentials:
        found.insert(0, _without_a_way_in(row))
    sentences = format_html_join(" ", "{}", ((badge.sentence,) for badge in found))
    return replace(found[0], sentence=sentences, also=tuple(found[1:]))


def _without_a_way_in(row: SystemUser) -> Badge:
    if row.uses_key:
        return Badge(_("No valid key"), "bad", _("It has no valid key. Register a new one."))
    if row.uses_certificate:
        text = _("It has no valid certificate. Register a new one.")
        return Badge(_("No valid certificate"), "bad", text)
    return Badge(NO_VALID_SECRET, "bad", _("It has no valid secret. Issue a new one."))


def _active(row: SystemUser, standing: Standing, at: datetime) -> Badge:
    """Active; with *Ends soon* if it, or the last of its secrets, does."""
    badge = until_badge(ACTIVE, row.expires_at, at)
    last = standing.valid_credentials[0]
    if last.expires_at - at > SOON or (row.expires_at and row.expires_at <= last.expires_at):
        return badge
    text = _("The last valid one, …{secret}, ends {moment}. Issue or register another before.")
    warning = format_html(text, secret=last.hint, moment=moment(last.expires_at))
    return _ending_soon(ACTIVE, format_html("{} {}", badge.sentence, warning))


def _badge_of_refusal(row: SystemUser, reason: str) -> Badge:
    match reason:
        case RegistryReason.SYSTEM_USER_BLOCKED:
            return Badge(BLOCKED, "bad", sentence_of_block(row))
        case RegistryReason.SYSTEM_USER_EXPIRED:
            return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), row.expires_at))
        case RegistryReason.TAXPAYER_INACTIVE:
            return Badge(TAXPAYER_NOT_ACTIVE, "bad", _("Its taxpayer is not active."))
        case RegistryReason.INVALID_SCOPE:
            return Badge(_("No valid scope"), "bad", _("This service knows none of its scopes."))
        case _:
            return Badge(reason, "bad")


def sentence_of_block(row: SystemUser) -> SafeString:
    """Who blocked it, when and why."""
    who = format_html(
        _("Blocked by {who} since {moment}."), who=row.blocked_by, moment=moment(row.blocked_at)
    )
    return format_html("{} {}", who, format_html(_("Reason: {reason}"), reason=row.blocked_reason))


def badge_of_credential(row: Credential | ProtectedApiSecret, at: datetime) -> Badge:
    """Revoked, expired or valid."""
    if row.revoked_at is not None:
        return Badge(REVOKED, "neutral", _sentence(_("Revoked {moment}."), row.revoked_at))
    if is_over(row.expires_at, at):
        return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), row.expires_at))
    return until_badge(VALID, row.expires_at, at)


def badge_of_permission(row: GrantedPermission, at: datetime) -> Badge:
    """Valid, not yet valid, revoked or expired."""
    facts = facts_of(row)
    if is_in_force(facts, at):
        return until_badge(VALID, facts.valid_until, at)
    if row.revoked_at is not None and row.revoked_at == facts.ended_at:
        return Badge(REVOKED, "bad", _sentence(_("Revoked {moment}."), row.revoked_at))
    if facts.valid_from > at:
        return Badge(PENDING, "neutral", _sentence(_("It starts {moment}."), facts.valid_from))
    return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), facts.ended_at))


def facts_of(row: GrantedPermission, codes: tuple[str, ...] = ()) -> PermissionFacts:
    """The permission as the rules read it; with its codes where they matter."""
    return PermissionFacts(codes, row.valid_from, row.valid_until, row.revoked_at)


def until_badge(word: Promise, until: datetime | None, at: datetime) -> Badge:
    """That it is so until this moment; with *Ends soon* in the last 30 days."""
    if until is None:
        return Badge(word, "good", _("No end date."))
    sentence = _sentence(_("Until {moment}."), until)
    return _ending_soon(word, sentence) if until - at <= SOON else Badge(word, "good", sentence)


def _ending_soon(word: Promise, sentence: SafeString) -> Badge:
    # In words: a colour says nothing to those who do not know or see it (WCAG 1.4.1).
    return Badge(word, "good", sentence, also=(Badge(ENDS_SOON, "warning"),))


def _sentence(text: str, at: datetime | None) -> SafeString:
    return format_html(text, moment=moment(at))
