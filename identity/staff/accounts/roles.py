"""The roles of staff and their permissions: one table for groups, pages and documentation.

Pure data. Separation of duties: those who register taxpayers cannot issue credentials, and those
who issue credentials cannot register taxpayers, so an invented client needs two people. Both may
block a client; only one of them may unblock it. A superuser is outside of this table, because
somebody has to create the staff accounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

Codenames = frozenset[str]


@dataclass(frozen=True, slots=True)
class Role:
    """A group of staff: its duties in one line, and its permissions as `<app>.<codename>`."""

    duties: str
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
_SIGNING_KEYS = _of("tokens", "view_signingkey")
_STAFF = _of("auth", "view_user", "view_group") | _of("admin", "view_logentry")
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
    "revoke_permission",
)
_MANAGE_CREDENTIALS = _of(
    "taxpayers",
    "issue_credentials",
    "change_system_user",
    "extend_system_user",
    "unblock_system_user",
    "rotate_secret",
    "retire_secret",
    "revoke_secret",
) | _of("tokens", "rotate_signing_key")
_EXPORT_REGISTRY = _of("taxpayers", "export_registry")
_EXPORT_LOGINS = _of("tokens", "export_logins")

ROLES: Mapping[str, Role] = {
    "viewer": Role(
        "Answers clients: finds them and sees why a login failed.",
        _REGISTRY_AND_LOGINS,
    ),
    "registrar": Role(
        "Keeps the registry: taxpayers, intermediaries, permissions. Can stop a client.",
        _REGISTRY_AND_LOGINS | _HISTORY | _CHANGE_REGISTRY | _EXPORT_REGISTRY | _BLOCK_CLIENTS,
    ),
    "security officer": Role(
        "Decides who logs in: credentials, blocking and unblocking, the signing key.",
        _REGISTRY_AND_LOGINS
        | _HISTORY
        | _SIGNING_KEYS
        | _MANAGE_CREDENTIALS
        | _BLOCK_CLIENTS
        | _EXPORT_REGISTRY
        | _EXPORT_LOGINS,
    ),
    "auditor": Role(
        "Sees everything, the history and the staff's accounts too; changes nothing.",
        _REGISTRY_AND_LOGINS
        | _HISTORY
        | _SIGNING_KEYS
        | _STAFF
        | _EXPORT_REGISTRY
        | _EXPORT_LOGINS,
    ),
}


def edition(roles: Mapping[str, Role] = ROLES) -> str:
    """A hash of the table: the newest migration that applied it has the same."""
    table = "\n".join(
        f"{name}: {' '.join(sorted(roles[name].permissions))}" for name in sorted(roles)
    )
    return sha256(table.encode()).hexdigest()[:12]
