"""The roles of staff and their permissions: one table for groups, pages and documentation.

Pure data. Separation of duties: those who register taxpayers cannot issue credentials, and those
who issue credentials cannot register taxpayers, so an invented client needs two people. Both may
block a client; only one of them may unblock it. Those who manage accounts can do neither. What
counts is the duties of an account, wherever its permissions come from: roles, other groups, its own
permissions, or that it is a superuser.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from identity.staff.actions import ACTION_OF
from taxpayers import actions as registry, duties
from taxpayers.duties import Duty

Codenames = frozenset[str]


def _of(app: str, *codenames: str) -> Codenames:
    return frozenset(f"{app}.{codename}" for codename in codenames)


DUTY_OF: Mapping[str, Duty] = {
    name: action.duty for name, action in ACTION_OF.items() if action.duty is not None
}


def _all_of(*wanted: Duty) -> Codenames:
    return frozenset(name for name, duty in DUTY_OF.items() if duty in wanted)


@dataclass(frozen=True, slots=True)
class Role:
    """A group of staff: its title, its duties in one sentence, its `<app>.<codename>`s."""

    title: str | Promise
    duties: str | Promise
    permissions: Codenames


_REGISTRY_AND_LOGINS = _of("tokens", "view_loginevent") | _of(
    "taxpayers",
    *("view_taxpayer", "view_intermediary", "view_permissioncode", "view_grantedpermission"),
    *("view_permissionrequest", "view_systemuser"),
    "view_credential",  # its hint and dates, never a secret
)
_HISTORY = _of("taxpayers", "view_change")
_KEYS_AND_APIS = _of("tokens", "view_signingkey", "view_protectedapi") | _of(
    "webhooks", "view_webhookendpoint"
)
_STAFF_ACCOUNTS = _of("staff", "view_staffaccount", "view_staffsignin")
_EXPORT_REGISTRY = _of("taxpayers", registry.EXPORT_REGISTRY.name)

ACCOUNT_MANAGER = "account manager"  # besides superusers, the only role that manages accounts

ROLES: Mapping[str, Role] = {
    "viewer": Role(
        _("Viewer"),
        _("Answers questions of clients: finds them and sees why a login failed."),
        _REGISTRY_AND_LOGINS,
    ),
    "registrar": Role(
        _("Registrar"),
        _(
            "Maintains the registry: taxpayers, intermediaries, permissions. Can block a system"
            " user. Cannot issue credentials."
        ),
        _REGISTRY_AND_LOGINS
        | _HISTORY
        | _EXPORT_REGISTRY
        | _all_of(Duty.REGISTER, Duty.GRANT, Duty.STOP),
    ),
    "security officer": Role(
        _("Security officer"),
        _(
            "Decides who logs in: credentials, blocking and unblocking, the signing key. Cannot"
            " register taxpayers."
        ),
        _REGISTRY_AND_LOGINS
        | _HISTORY
        | _KEYS_AND_APIS
        | _all_of(Duty.ISSUE, Duty.STOP, Duty.AUDIT),
    ),
    "auditor": Role(
        _("Auditor"),
        _("Sees everything, also the history and the staff accounts. Changes nothing."),
        _REGISTRY_AND_LOGINS | _HISTORY | _KEYS_AND_APIS | _STAFF_ACCOUNTS | _all_of(Duty.AUDIT),
    ),
    ACCOUNT_MANAGER: Role(
        _("Account manager"),
        _(
            "Creates the accounts of staff, gives roles and resets sign-ins. Sees the history, but"
            " no taxpayers and no logins."
        ),
        _STAFF_ACCOUNTS | _HISTORY | _all_of(Duty.ACCOUNTS),
    ),
}


def duties_of(permissions: Iterable[str]) -> frozenset[Duty]:
    """Every duty that these permissions are part of."""
    return frozenset(DUTY_OF[name] for name in permissions if name in DUTY_OF)


def must_be_separate(permissions: Iterable[str]) -> bool:
    """Whether these permissions together give one person two duties that need two people."""
    return duties.must_be_separate(duties_of(permissions))


def usable(permissions: Iterable[str]) -> Codenames:
    """What of its permissions an account can use: only reading, if two duties must be separate."""
    held = frozenset(permissions)
    if not must_be_separate(held):
        return held
    return frozenset(name for name in held if name.partition(".")[2].startswith("view_"))
