"""Why logins are refused, in the staff's words, and who can mend it (contract 1, Refusals)."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from taxpayers.rules import Reason
from taxpayers.states import State
from tokens.models import LoginEvent


class Words(NamedTuple):
    """What is wrong, and who can mend it; both translated when they are shown."""

    what: Any
    who: Any


ISSUED = _("Token issued")
_DEVELOPER = _("The developer of the ERP system")
_OPERATOR = _("The operator of the ERP system")
_ROTATES = _("Whoever rotates the secrets of the ERP system")
_AUTHORITY = _("The tax authority")
_REPRESENTED = _("The represented taxpayer")
_NOBODY = _("Nobody: the ERP system tries again later")
_US = _("The operators of this service")

WORDS: dict[str, Words] = {
    Reason.METHOD_NOT_ALLOWED: Words(_("Not sent with POST"), _DEVELOPER),
    Reason.INSECURE_TRANSPORT: Words(_("Sent without HTTPS"), _DEVELOPER),
    Reason.MALFORMED_REQUEST: Words(_("Malformed request"), _DEVELOPER),
    Reason.MISSING_PARAMETER: Words(_("Parameter missing"), _DEVELOPER),
    Reason.UNSUPPORTED_GRANT_TYPE: Words(_("Wrong grant type"), _DEVELOPER),
    Reason.MALFORMED_ON_BEHALF_OF: Words(_("Malformed onbehalfof"), _DEVELOPER),
    Reason.MALFORMED_CREDENTIALS: Words(_("Malformed credentials"), _OPERATOR),
    Reason.INVALID_CREDENTIALS: Words(_("Wrong client ID or secret"), _OPERATOR),
    Reason.SECRET_EXPIRED: Words(_("Secret expired"), _ROTATES),
    Reason.SECRET_REVOKED: Words(_("Secret revoked"), _ROTATES),
    Reason.RATE_LIMITED: Words(_("Too many logins"), _DEVELOPER),
    Reason.SYSTEM_USER_BLOCKED: Words(_("System user blocked"), _AUTHORITY),
    Reason.SYSTEM_USER_EXPIRED: Words(_("System user expired"), _AUTHORITY),
    Reason.TAXPAYER_INACTIVE: Words(_("Taxpayer not active"), _AUTHORITY),
    Reason.NOT_AN_INTERMEDIARY: Words(_("Not an intermediary"), _AUTHORITY),
    Reason.INTERMEDIARY_INACTIVE: Words(_("Intermediary not active"), _AUTHORITY),
    Reason.NO_PERMISSION: Words(_("No permission"), _REPRESENTED),
    Reason.PERMISSION_NOT_YET_VALID: Words(_("Permission not yet valid"), _REPRESENTED),
    Reason.PERMISSION_EXPIRED: Words(_("Permission expired"), _REPRESENTED),
    Reason.PERMISSION_REVOKED: Words(_("Permission revoked"), _REPRESENTED),
    Reason.INVALID_SCOPE: Words(_("Scope not allowed"), _DEVELOPER),
    Reason.TEMPORARILY_UNAVAILABLE: Words(_("Service unavailable"), _NOBODY),
    Reason.SERVER_ERROR: Words(_("Error in the service"), _US),
}


def words_of(reason: str) -> Words:
    """The words for a recorded reason; one that this version does not know is shown as it is."""
    return WORDS.get(reason) or Words(reason, "")


def state_of_login(event: LoginEvent) -> State:
    """How the login ended, in a few words."""
    return State(ISSUED, "good") if event.is_issued else State(words_of(event.reason).what, "bad")
