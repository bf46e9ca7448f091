"""What the pages show of a staff account: its state, its roles and its second steps."""

from collections import Counter
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.accounts.roles import ROLES, Role, must_be_separate
from identity.staff.display import moment
from identity.staff.framework.badges import ACTIVE, NOT_ACTIVE, Badge
from identity.staff.models import SUPERUSER, FirstPassword, StaffAccount

FIRST_PASSWORD = gettext_lazy("First password")
CONFLICTING_ROLES = gettext_lazy("Conflicting roles")
NO_ROLE = gettext_lazy("No role")

_OUTSIDE = Role(
    gettext_lazy("Superuser"),
    gettext_lazy(
        "May do everything, also create and change accounts. Only for setting the service up."
    ),
    frozenset(),
)
_STEPS = {
    Authenticator.Type.WEBAUTHN: gettext_lazy("Passkey or security key"),
    Authenticator.Type.TOTP: gettext_lazy("Authenticator app"),
}


def badge_of_account(row: StaffAccount, at: datetime) -> Badge:
    """Whether somebody can sign in with it, and what has to be done before."""
    if not (row.is_active and row.is_staff):
        return Badge(NOT_ACTIVE, "bad", _("Nobody can sign in with this account."))
    if must_be_separate(row.roles):
        text = _("One person must not have both roles. Change the role of this account.")
        return Badge(CONFLICTING_ROLES, "bad", text)
    if not row.roles:
        return Badge(NO_ROLE, "warning", _("It can sign in, but sees nothing. Give it a role."))
    first: FirstPassword | None = getattr(row, "first_password", None)
    if first is None:
        return Badge(ACTIVE, "good")
    if first.expires_at < at:
        text = _("The first password expired {moment}. Set a new first password.")
        return Badge(FIRST_PASSWORD, "bad", format_html(text, moment=moment(first.expires_at)))
    text = _("Its owner has not chosen a password yet. The first password works until {moment}.")
    return Badge(FIRST_PASSWORD, "warning", format_html(text, moment=moment(first.expires_at)))


def roles_of(row: StaffAccount) -> list[Role]:
    """The roles with title and duties; a group that is no role has its name alone."""
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
