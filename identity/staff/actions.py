"""What the history can say was done: with staff accounts, and the list of all actions."""

from functools import partial

from django.utils.translation import gettext_lazy

from identity.webhooks import actions as webhooks
from taxpayers import actions as registry
from taxpayers.actions import Action, actions_in, marked as _
from taxpayers.duties import Duty
from tokens import actions as protocol

_account = partial(Action, "staffaccount", Duty.ACCOUNTS)
CREATE_ACCOUNT = _account("create_account", _("Created the staff account"))
RENAME_ACCOUNT = _account("rename_account", _("Renamed the staff account"))
CHANGE_ROLE = _account("change_role", _("Changed the role of the staff account"))
SET_FIRST_PASSWORD = _account("set_first_password", _("Issued a new first password"))
RESET_SECOND_FACTOR = _account(
    "reset_second_factor", _("Reset the second step of the staff account")
)
END_SESSIONS = _account("end_sessions", _("Ended sessions of the staff account"))
ACTIVATE_ACCOUNT = _account("activate_account", _("Activated the staff account"))
DEACTIVATE_ACCOUNT = _account("deactivate_account", _("Deactivated the staff account"))
CONFIRM_ACCOUNT = _account("confirm_account", _("Confirmed what another person asked for"))
DECLINE_ACCOUNT = _account("decline_account", _("Declined what waited for a second person"))
_own = partial(Action, "staffaccount", None)
CHANGE_OWN_PASSWORD = _own("change_own_password", _("Changed their own password"))
CHANGE_OWN_SECOND_STEP = _own("change_own_second_step", _("Changed their own second step"))

ACCOUNT_ACTIONS = actions_in(globals())
ACTIONS = {
    action.name: action
    for action in (*registry.ACTIONS, *protocol.ACTIONS, *ACCOUNT_ACTIONS, *webhooks.ACTIONS)
}
# Each permission to act, as `<app>.<codename>`, and what it allows.
ACTION_OF = {
    f"{app}.{action.name}": action
    for app, actions in (
        ("taxpayers", registry.ACTIONS),
        ("tokens", protocol.ACTIONS),
        ("staff", ACCOUNT_ACTIONS),
    )
    for action in actions
    if action.duty is not None
}
_PERMISSION_OF = {action: permission for permission, action in ACTION_OF.items()}
TEXTS = {name: gettext_lazy(action.past) for name, action in ACTIONS.items()}


def permission_to(action: Action) -> str:
    """The permission that staff need for it; what is for operators has none, and is refused."""
    return _PERMISSION_OF.get(action, "")
