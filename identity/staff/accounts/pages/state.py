"""What the pages show of a staff account: state, roles, second steps, and what waits."""

from collections import Counter
from dataclasses import replace
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff import actions
from identity.staff.accounts.roles import ROLES, Role, must_be_separate
from identity.staff.display import moment
from identity.staff.framework.badges import ACTIVE, NOT_ACTIVE, Badge
from identity.staff.models import SUPERUSER, FirstPassword, StaffAccount, WaitingChange

FIRST_PASSWORD = gettext_lazy("First password")
WAITS = gettext_lazy("Waits for a second person")

_OUTSIDE = Role(
    gettext_lazy("Superuser"),
    gettext_lazy(
        "Belongs to no role. Where a second person is required it only reads; elsewhere it may do"
        " everything."
    ),
    frozenset(),
)
_STEPS = {
    Authenticator.Type.WEBAUTHN: gettext_lazy("Passkey or security key"),
    Authenticator.Type.TOTP: gettext_lazy("Authenticator app"),
}


# What waits for a second person, besides a new role.
ASKED = {
    actions.CREATE_ACCOUNT: gettext_lazy("The new account"),
    actions.SET_FIRST_PASSWORD: gettext_lazy("A new first password"),
    actions.RESET_SECOND_FACTOR: gettext_lazy("A reset of the second step"),
    actions.ACTIVATE_ACCOUNT: gettext_lazy("The activation"),
}


def waiting_of(row: StaffAccount, at: datetime) -> list[tuple[WaitingChange, str | Promise, bool]]:
    """What waits for this account, in words; and whether it waited too long."""
    return [(one, _asked(one), one.is_over(at)) for one in row.waiting_changes.all()]


def _asked(one: WaitingChange) -> str | Promise:
    if one.role:
        return _("The role {role}").format(role=ROLES[one.role].title)
    return ASKED[actions.ACTIONS[one.action]]


def why_it_only_reads(row: StaffAccount) -> str:
    """Said on its page, and to its owner."""
    if row.is_superuser:
        return _(
            "A superuser can only read here, because one person must not have every duty. An"
            " operator creates accounts with a role: manage.py create_account"
        )
    return _(
        "This account has duties that need two people, so it can only read. An account manager can"
        " change its role."
    )


def badge_of_account(row: StaffAccount, at: datetime) -> Badge:
    """Whether its owner can sign in, what has to be done before, and whether anything waits."""
    badge = _badge_of_sign_in(row, at)
    waits = any(not one.is_over(at) for one in row.waiting_changes.all())
    return replace(badge, also=(*badge.also, Badge(WAITS, "warning"))) if waits else badge


def _badge_of_sign_in(row: StaffAccount, at: datetime) -> Badge:
    if not (row.is_active and row.is_staff):
        return Badge(NOT_ACTIVE, "bad", _("This account cannot sign in."))
    if row.is_superuser and settings.SECOND_PERSON_REQUIRED:
        return Badge(_("Only reads"), "warning", why_it_only_reads(row))
    if must_be_separate(row.permissions_held):
        return Badge(_("Conflicting roles"), "bad", why_it_only_reads(row))
    if not row.roles:
        text = _("It can sign in, but sees nothing. Give it a role.")
        return Badge(_("No role"), "warning", text)
    first: FirstPassword | None = getattr(row, "first_password", None)
    if first is None:
        return Badge(ACTIVE, "good")
    if first.expires_at < at:
        text = _("The first password expired {moment}. Set a new first password.")
        return Badge(FIRST_PASSWORD, "bad", format_html(text, moment=moment(first.expires_at)))
    text = _("Its owner has not chosen a password yet. The first password works until {moment}.")
    return Badge(FIRST_PASSWORD, "warning", format_html(text, moment=moment(first.expires_at)))


def roles_of(row: StaffAccount) -> list[Role]:
    """The roles with title and duties; a group that is no role has only its name."""
    return [
        _OUTSIDE if name == SUPERUSER else ROLES.get(name) or Role(name, "", frozenset())
        for name in row.roles
    ]


def titles_of(row: StaffAccount) -> str:
    """The titles of its roles, in the language of the reader."""
    return ", ".join(str(role.title) for role in roles_of(row)) or "—"


def second_steps_of(row: StaffAccount) -> list[str | Promise]:
    """Its second steps, without the recovery codes; a kind with its number if there are several."""
    counts = Counter(factor.type for factor in row.authenticator_set.all())
    return [
        f"{title} ({counts[kind]})" if counts[kind] > 1 else title
        for kind, title in _STEPS.items()
        if counts[kind]
    ]
