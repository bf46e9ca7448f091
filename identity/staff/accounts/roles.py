"""The roles of staff and their permissions: one table for groups, pages and documentation.

Pure data. Separation of duties: those who register taxpayers cannot issue credentials, and those
who issue credentials cannot register taxpayers, so an invented client needs two people. Both may
block a client; only one of them may unblock it. Those who manage accounts can do neither. A
superuser is outside of this table, because somebody has to create the first accounts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256

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

# Nobody may have both: who could, would let in a client that does not exist.
_SEPARATE_DUTIES = _of("taxpayers", "register_taxpayer", "issue_credentials")


def must_be_separate(roles: Collection[str]) -> bool:
    """Whether these roles together give one person two duties that need two people."""
    known = [ROLES[role].permissions for role in roles if role in ROLES]
    return frozenset[str]().union(*known) >= _SEPARATE_DUTIES


def edition(roles: Mapping[str, Role] = ROLES) -> str:
    """A hash of the table: the newest migration that applied it has the same."""
    table = "\n".join(
        f"{name}: {' '.join(sorted(roles[name].permissions))}" for name in sorted(roles)
    )
    return sha256(table.encode()).hexdigest()[:12]
