"""The roles of staff and their permissions: one table for groups, pages and documentation.

Pure data. Separation of duties: those who register taxpayers cannot issue credentials, and those
who issue credentials cannot register taxpayers, so an invented client needs two people. Both may
block a client; only one of them may unblock it. Those who manage accounts can do neither. What
counts is the duties of an account, wherever its permissions come from: roles, other groups, its own
permissions, or that it is a superuser.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Codenames = frozenset[str]


@dataclass(frozen=True, slots=True)
class Role:
    """A group of staff: its title, its duties in one sentence, its `<app>.<codename>`s."""

    title: str | Promise
    duties: str | Promise
    permissions: Codenames


def _of(app: str, *codenames: str) -> Codenames:
    return frozenset(f"{app}.{codename}" for codename in codenames)


_REGISTRY_AND_LOGINS = _of(
    "taxpayers",
    "view_taxpayer",
    "view_intermediary",
    "view_permissioncode",
    "view_grantedpermission",
    "view_systemuser",
    "view_clientsecret",  # its hint and dates; nobody can view a secret
) | _of("tokens", "view_loginevent")
_HISTORY = _of("taxpayers", "view_change")
_KEYS_AND_APIS = _of("tokens", "view_signingkey", "view_protectedapi")
_STAFF_ACCOUNTS = _of("staff", "view_staffaccount")
_MANAGE_ACCOUNTS = _of(
    "staff",
    "create_account",
    "rename_account",
    "change_role",
    "set_first_password",
    "reset_second_factor",
    "activate_account",
    "deactivate_account",
    "confirm_account",
    "decline_account",
)
_BLOCK_CLIENTS = _of("taxpayers", "block_system_user")
_CHANGE_REGISTRY = _of(
    "taxpayers",
    "register_taxpayer",
    "rename_taxpayer",
    "activate_taxpayer",
    "deactivate_taxpayer",
    "import_registry",
    "register_intermediary",
    "change_intermediary",
    "set_permission_code",
    "grant_permission",
    "extend_permission",
    "revoke_permission",
)
_MANAGE_CREDENTIALS = _of(
    "taxpayers",
    "register_system_user",
    "issue_credentials",
    "change_login_method",
    "change_system_user",
    "limit_system_user",
    "extend_system_user",
    "unblock_system_user",
    "rotate_secret",
    "register_client_key",
    "register_client_certificate",
    "change_secret",
    "retire_secret",
    "revoke_secret",
) | _of(
    "tokens",
    "rotate_signing_key",
    "register_protected_api",
    "activate_protected_api",
    "deactivate_protected_api",
)
_EXPORT_REGISTRY = _of("taxpayers", "export_registry")
_EXPORT_LOGINS = _of("tokens", "export_logins")

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
        _REGISTRY_AND_LOGINS | _HISTORY | _CHANGE_REGISTRY | _EXPORT_REGISTRY | _BLOCK_CLIENTS,
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
        | _MANAGE_CREDENTIALS
        | _BLOCK_CLIENTS
        | _EXPORT_REGISTRY
        | _EXPORT_LOGINS,
    ),
    "auditor": Role(
        _("Auditor"),
        _("Sees everything, also the history and the staff accounts. Changes nothing."),
        _REGISTRY_AND_LOGINS
        | _HISTORY
        | _KEYS_AND_APIS
        | _STAFF_ACCOUNTS
        | _EXPORT_REGISTRY
        | _EXPORT_LOGINS,
    ),
    ACCOUNT_MANAGER: Role(
        _("Account manager"),
        _(
            "Creates the accounts of staff, gives roles and resets sign-ins. Sees the history, but"
            " no taxpayers and no logins."
        ),
        _STAFF_ACCOUNTS | _MANAGE_ACCOUNTS | _HISTORY,
    ),
}


class Duty(StrEnum):
    """What a permission to act is for. To read is no duty."""

    REGISTER = "register"  # and grant: who is in the registry, and who may act for whom
    ISSUE = "issue"  # who logs in, and with what
    STOP = "stop"
    ACCOUNTS = "accounts"
    AUDIT = "audit"  # take lists out of the service


DUTIES: Mapping[Duty, Codenames] = {
    Duty.REGISTER: _CHANGE_REGISTRY,
    Duty.ISSUE: _MANAGE_CREDENTIALS,
    Duty.STOP: _BLOCK_CLIENTS,
    Duty.ACCOUNTS: _MANAGE_ACCOUNTS,
    Duty.AUDIT: _EXPORT_REGISTRY | _EXPORT_LOGINS,
}
# One person must not have both: with both, they could let in a client that does not exist.
_SEPARATE = frozenset({Duty.REGISTER, Duty.ISSUE})


def duties_of(permissions: Iterable[str]) -> frozenset[Duty]:
    """Every duty that these permissions are part of."""
    held = frozenset(permissions)
    return frozenset(duty for duty, codenames in DUTIES.items() if held & codenames)


def must_be_separate(permissions: Iterable[str]) -> bool:
    """Whether these permissions together give one person two duties that need two people."""
    return duties_of(permissions) >= _SEPARATE


def usable(permissions: Iterable[str]) -> Codenames:
    """What of its permissions an account can use: only reading, if two duties must be separate."""
    held = frozenset(permissions)
    if not must_be_separate(held):
        return held
    return frozenset(name for name in held if name.partition(".")[2].startswith("view_"))
