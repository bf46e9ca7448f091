"""In which state a thing is, in one word and one sentence; what decides it is `taxpayers.rules`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.templatetags.staff import moment
from taxpayers.facts.values import PermissionFacts
from taxpayers.models import ClientSecret, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import is_in_force, is_over

Tone = Literal["good", "bad", "warning", "neutral"]
SOON = timedelta(days=30)
UNUSED_FOR = timedelta(days=30)
# An ERP logs in every hour: after a whole day with the new secret alone, it has moved.
MOVED_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Badge:
    """One word, its colour, and the sentence that says since or until when, by whom and why."""

    word: str | Promise
    tone: Tone
    sentence: str | SafeString = ""

    @property
    def badge(self) -> SafeString:
        return format_html('<span class="badge badge-{}">{}</span>', self.tone, self.word)

    @property
    def is_good(self) -> bool:
        return self.tone in ("good", "warning")


ACTIVE = gettext_lazy("Active")
NOT_ACTIVE = gettext_lazy("Not active")
BLOCKED = gettext_lazy("Blocked")
EXPIRED = gettext_lazy("Expired")
REVOKED = gettext_lazy("Revoked")
IN_FORCE = gettext_lazy("In force")
TO_COME = gettext_lazy("Not yet valid")
VALID = gettext_lazy("Valid")


def badge_of_taxpayer(row: Taxpayer) -> Badge:
    """Active or not."""
    if row.is_active:
        return Badge(ACTIVE, "good")
    return Badge(NOT_ACTIVE, "bad", _("Its system users get no token."))


def badge_of_intermediary(row: Intermediary, at: datetime) -> Badge:
    """Active, or not active, or over."""
    if not row.is_active:
        return Badge(NOT_ACTIVE, "bad", _("It may not act for anybody."))
    if is_over(row.active_until, at):
        return Badge(EXPIRED, "bad", _sentence(_("The role ended {moment}."), row.active_until))
    return _running(ACTIVE, row.active_until, at)


def badge_of_system_user(row: SystemUser, at: datetime) -> Badge:
    """Blocked, expired or active: what matters most comes first."""
    if row.blocked_at is not None:
        return Badge(
            BLOCKED,
            "bad",
            format_html(
                "{} {}",
                format_html(
                    _("Blocked by {who} since {moment}."),
                    who=row.blocked_by,
                    moment=moment(row.blocked_at),
                ),
                format_html(_("Reason: {reason}"), reason=row.blocked_reason),
            ),
        )
    if row.is_expired(at):
        return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), row.expires_at))
    return _running(ACTIVE, row.expires_at, at, endless=_("It does not expire."))


def badge_of_secret(row: ClientSecret, at: datetime) -> Badge:
    """Revoked, expired or valid."""
    if row.revoked_at is not None:
        return Badge(REVOKED, "neutral", _sentence(_("Revoked {moment}."), row.revoked_at))
    if is_over(row.expires_at, at):
        return Badge(EXPIRED, "bad", _sentence(_("It expired {moment}."), row.expires_at))
    return _running(VALID, row.expires_at, at)


def is_safe_to_remove(row: ClientSecret, all_of_user: list[ClientSecret], at: datetime) -> bool:
    """Whether nobody is likely to miss this live secret.

    It has not been used for 30 days; or a newer one is in use, and this one no longer.
    """
    if not row.is_live(at):
        return False
    last = row.last_used_at or row.created_at
    if at - last >= UNUSED_FOR:
        return True
    return any(
        other.pk != row.pk
        and other.is_live(at)
        and other.created_at > row.created_at
        and other.last_used_at is not None
        and other.last_used_at - last >= MOVED_FOR
        for other in all_of_user
    )


def badge_of_permission(row: GrantedPermission, at: datetime) -> Badge:
    """In force, still to come, or how it ended."""
    facts = facts_of(row)
    if is_in_force(facts, at):
        return _running(IN_FORCE, facts.valid_until, at)
    if row.revoked_at is not None and row.revoked_at == facts.ended_at:
        return Badge(REVOKED, "bad", _sentence(_("Revoked {moment}."), row.revoked_at))
    if facts.valid_from > at:
        return Badge(TO_COME, "neutral", _sentence(_("It begins {moment}."), facts.valid_from))
    return Badge(EXPIRED, "bad", _sentence(_("It ended {moment}."), facts.ended_at))


def facts_of(row: GrantedPermission, codes: tuple[str, ...] = ()) -> PermissionFacts:
    """What the rules ask of a permission; its codes where they matter."""
    return PermissionFacts(codes, row.valid_from, row.valid_until, row.revoked_at)


def _running(word: Promise, until: datetime | None, at: datetime, endless: str = "") -> Badge:
    if until is None:
        return Badge(word, "good", endless or _("Without an end."))
    tone: Tone = "warning" if until - at <= SOON else "good"
    return Badge(word, tone, _sentence(_("Until {moment}."), until))


def _sentence(text: str, at: datetime | None) -> SafeString:
    return format_html(text, moment=moment(at))
