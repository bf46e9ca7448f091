"""What the history can say was done with protected APIs, signing keys and logins. Pure."""

from functools import partial

from taxpayers.actions import Action, actions_in, marked as _
from taxpayers.duties import Duty

_protected_api = partial(Action, "protectedapi", Duty.ISSUE)
REGISTER_PROTECTED_API = _protected_api("register_protected_api", _("Registered the protected API"))
ACTIVATE_PROTECTED_API = _protected_api("activate_protected_api", _("Activated the protected API"))
DEACTIVATE_PROTECTED_API = _protected_api(
    "deactivate_protected_api", _("Deactivated the protected API")
)

ROTATE_SIGNING_KEY = Action(
    "signingkey", Duty.ISSUE, "rotate_signing_key", _("Rotated the signing key")
)
PRUNE_LOGINS = Action("loginevent", None, "prune_logins", _("Deleted old logins"))
EXPORT_LOGINS = Action("loginevent", Duty.AUDIT, "export_logins", _("Exported logins"))

ACTIONS = actions_in(globals())
