"""Which changes of the history are events, and what the events are called. Pure."""

from collections.abc import Mapping

_OF_OBJECT: Mapping[str, Mapping[str, str]] = {
    "taxpayer": {
        "register_taxpayer": "taxpayer.registered",
        "rename_taxpayer": "taxpayer.renamed",
        "activate_taxpayer": "taxpayer.activated",
        "deactivate_taxpayer": "taxpayer.deactivated",
    },
    "intermediary": {
        "register_intermediary": "intermediary.registered",
        "change_intermediary": "intermediary.changed",
    },
    "grantedpermission": {
        "grant_permission": "permission.granted",
        "extend_permission": "permission.changed",
        "revoke_permission": "permission.revoked",
    },
    "systemuser": {
        "register_system_user": "system_user.registered",
        "issue_credentials": "system_user.registered",
        "change_system_user": "system_user.changed",
        "limit_system_user": "system_user.changed",
        "extend_system_user": "system_user.changed",
        "change_login_method": "system_user.changed",
        "block_system_user": "system_user.blocked",
        "unblock_system_user": "system_user.unblocked",
        "rotate_secret": "credential.issued",
        "register_client_key": "credential.issued",
        "register_client_certificate": "credential.issued",
        "change_secret": "credential.changed",
        "retire_secret": "credential.changed",
        "revoke_secret": "credential.revoked",
    },
}
TEST = "webhook.test"
ENDS_SOON = {
    "credential": "credential.ends_soon",
    "system_user": "system_user.ends_soon",
    "permission": "permission.ends_soon",
    "intermediary": "intermediary.ends_soon",
}
# What an endpoint can choose from; TEST is sent to every one.
EVENT_TYPES = tuple(
    sorted(
        {name for names in _OF_OBJECT.values() for name in names.values()} | {*ENDS_SOON.values()}
    )
)


def event_type_of(object_type: str, action: str) -> str:
    """The type of the event; empty: the change is none."""
    return _OF_OBJECT.get(object_type, {}).get(action, "")
