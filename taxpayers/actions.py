"""What the history can say was done: the actions of the registry, and what an action is. Pure.

The rooms above have modules of this name for theirs; `identity.staff.actions` has all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from taxpayers.credential_kind import by_kind
from taxpayers.duties import Duty


def marked(text: str) -> str:
    """Marks a text for the catalogues; it is translated where it is shown."""
    return text


_ = marked


@dataclass(frozen=True, slots=True)
class Action:
    """One kind of change. Its name, also of a permission of staff, is public: it never changes."""

    of: str  # the model of the rows that it is about
    duty: Duty | None  # None: for everybody's own account, or for operators only
    name: str
    past: str  # as the history shows it, marked for translation
    event: str = ""  # type of the event that webhooks send; empty: none
    past_by_kind: Mapping[str | None, str] = field(default_factory=dict, hash=False)

    def past_of(self, kind: str | None) -> str:
        """As the history shows it for this kind of credential; None: no kind is named."""
        return self.past_by_kind.get(kind, self.past)


def actions_in(module: Mapping[str, Any]) -> tuple[Action, ...]:
    """Every action that a module defines, in its order."""
    return tuple(value for value in module.values() if isinstance(value, Action))


_taxpayer = partial(Action, "taxpayer", Duty.REGISTER)
REGISTER_TAXPAYER = _taxpayer(
    "register_taxpayer", _("Registered the taxpayer"), "taxpayer.registered"
)
IMPORT_REGISTRY = _taxpayer("import_registry", _("Imported the taxpayer from a file"))
UNDO_IMPORT = _taxpayer("undo_import", _("Removed the taxpayer: its import was undone"))
RENAME_TAXPAYER = _taxpayer("rename_taxpayer", _("Renamed the taxpayer"), "taxpayer.renamed")
ACTIVATE_TAXPAYER = _taxpayer(
    "activate_taxpayer", _("Activated the taxpayer"), "taxpayer.activated"
)
DEACTIVATE_TAXPAYER = _taxpayer(
    "deactivate_taxpayer", _("Deactivated the taxpayer"), "taxpayer.deactivated"
)

_intermediary = partial(Action, "intermediary", Duty.REGISTER)
REGISTER_INTERMEDIARY = _intermediary(
    "register_intermediary", _("Registered as an intermediary"), "intermediary.registered"
)
CHANGE_INTERMEDIARY = _intermediary(
    "change_intermediary", _("Changed the intermediary"), "intermediary.changed"
)

SET_PERMISSION_CODE = Action(
    "permissioncode", Duty.GRANT, "set_permission_code", _("Added or changed the permission code")
)

_permission = partial(Action, "grantedpermission", Duty.GRANT)
GRANT_PERMISSION = _permission("grant_permission", _("Granted a permission"), "permission.granted")
EXTEND_PERMISSION = _permission(
    "extend_permission", _("Changed the last day of the permission"), "permission.changed"
)
USE_PERMISSION = Action(
    "grantedpermission",
    None,
    "use_permission",
    _("The permission was used for the first time"),
    "permission.first_used",
)
REVOKE_PERMISSION = _permission(
    "revoke_permission", _("Revoked a permission"), "permission.revoked"
)

_request, _permission_request, _connection = (
    partial(Action, "permissionrequest", duty) for duty in (None, Duty.GRANT, Duty.ISSUE)
)
ASK_PERMISSION = _request(
    "ask_permission", _("Asked for a permission"), "permission_request.opened"
)
ASK_CONNECTION = _request(
    "ask_connection", _("Asked to log in with its own key"), "permission_request.opened"
)
APPROVE_CONNECTION = _connection(
    "approve_connection", _("Approved the connection"), "permission_request.approved"
)
APPROVE_PERMISSION_REQUEST = _permission_request(
    "approve_permission_request", _("Approved the request"), "permission_request.approved"
)
DECLINE_CONNECTION = _connection(
    "decline_connection", _("Declined the connection"), "permission_request.declined"
)
DECLINE_PERMISSION_REQUEST = _permission_request(
    "decline_permission_request", _("Declined the request"), "permission_request.declined"
)
WITHDRAW_PERMISSION_REQUEST = _request(
    "withdraw_permission_request", _("Withdrew the request"), "permission_request.withdrawn"
)
EXPIRE_PERMISSION_REQUEST = _request(
    "expire_permission_request", _("The request expired"), "permission_request.expired"
)

_system_user = partial(Action, "systemuser", Duty.ISSUE)
REGISTER_SYSTEM_USER = _system_user(
    "register_system_user",
    _("Registered the system user, without a secret"),
    "system_user.registered",
)
ISSUE_CREDENTIALS = _system_user(
    "issue_credentials", _("Issued credentials"), "system_user.registered"
)
CHANGE_SYSTEM_USER = _system_user(
    "change_system_user", _("Changed the system user"), "system_user.changed"
)
LIMIT_SYSTEM_USER = _system_user(
    "limit_system_user", _("Changed what the system user may do for others"), "system_user.changed"
)
EXTEND_SYSTEM_USER = _system_user(
    "extend_system_user", _("Changed the last day of the system user"), "system_user.changed"
)
BLOCK_SYSTEM_USER = Action(
    "systemuser",
    Duty.STOP,
    "block_system_user",
    _("Blocked the system user"),
    "system_user.blocked",
)
UNBLOCK_SYSTEM_USER = _system_user(
    "unblock_system_user", _("Unblocked the system user"), "system_user.unblocked"
)
ROTATE_SECRET = _system_user("rotate_secret", _("Issued a new secret"), "credential.issued")
CHANGE_LOGIN_METHOD = _system_user(
    "change_login_method", _("Changed how the system user logs in"), "system_user.changed"
)
REGISTER_CLIENT_KEY = _system_user(
    "register_client_key", _("Registered a key"), "credential.issued"
)
REGISTER_CLIENT_CERTIFICATE = _system_user(
    "register_client_certificate", _("Registered a certificate"), "credential.issued"
)
CHANGE_SECRET = _system_user(
    "change_secret",
    _("Changed from where a secret, key or certificate may be used"),
    "credential.changed",
    by_kind(
        _("Changed from where a secret may be used"),
        _("Changed from where a key may be used"),
        _("Changed from where a certificate may be used"),
    ),
)
RETIRE_SECRET = _system_user(
    "retire_secret",
    _("Set the last day of a secret, key or certificate"),
    "credential.changed",
    by_kind(
        _("Set the last day of a secret"),
        _("Set the last day of a key"),
        _("Set the last day of a certificate"),
    ),
)
REVOKE_SECRET = _system_user(
    "revoke_secret",
    _("Revoked a secret, key or certificate"),
    "credential.revoked",
    by_kind(_("Revoked a secret"), _("Revoked a key"), _("Revoked a certificate")),
)

EXPORT_REGISTRY = Action("", Duty.AUDIT, "export_registry", _("Exported a list"))

ACTIONS = actions_in(globals())
