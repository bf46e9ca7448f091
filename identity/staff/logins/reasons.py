"""Why logins are refused, in the staff's words, and who can mend it (contract 1, Refusals)."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from identity.staff.framework.badges import Badge
from taxpayers.rules import Reason
from tokens.models import LoginEvent


class StaffText(NamedTuple):
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

WORDS: dict[str, StaffText] = {
    Reason.METHOD_NOT_ALLOWED: StaffText(_("Not sent with POST"), _DEVELOPER),
    Reason.INSECURE_TRANSPORT: StaffText(_("Sent without HTTPS"), _DEVELOPER),
    Reason.MALFORMED_REQUEST: StaffText(_("Malformed request"), _DEVELOPER),
    Reason.MISSING_PARAMETER: StaffText(_("Parameter missing"), _DEVELOPER),
    Reason.UNSUPPORTED_GRANT_TYPE: StaffText(_("Wrong grant type"), _DEVELOPER),
    Reason.MALFORMED_ON_BEHALF_OF: StaffText(_("Malformed onbehalfof"), _DEVELOPER),
    Reason.MALFORMED_CREDENTIALS: StaffText(_("Malformed credentials"), _OPERATOR),
    Reason.INVALID_CREDENTIALS: StaffText(_("Wrong client ID or secret"), _OPERATOR),
    Reason.SECRET_EXPIRED: StaffText(_("Secret expired"), _ROTATES),
    Reason.SECRET_REVOKED: StaffText(_("Secret revoked"), _ROTATES),
    Reason.RATE_LIMITED: StaffText(_("Too many logins"), _DEVELOPER),
    Reason.SYSTEM_USER_BLOCKED: StaffText(_("System user blocked"), _AUTHORITY),
    Reason.SYSTEM_USER_EXPIRED: StaffText(_("System user expired"), _AUTHORITY),
    Reason.TAXPAYER_INACTIVE: StaffText(_("Taxpayer not active"), _AUTHORITY),
    Reason.NOT_AN_INTERMEDIARY: StaffText(_("Not an intermediary"), _AUTHORITY),
    Reason.INTERMEDIARY_INACTIVE: StaffText(_("Intermediary not active"), _AUTHORITY),
    Reason.NO_PERMISSION: StaffText(_("No permission"), _REPRESENTED),
    Reason.PERMISSION_NOT_YET_VALID: StaffText(_("Permission not yet valid"), _REPRESENTED),
    Reason.PERMISSION_EXPIRED: StaffText(_("Permission expired"), _REPRESENTED),
    Reason.PERMISSION_REVOKED: StaffText(_("Permission revoked"), _REPRESENTED),
    Reason.INVALID_SCOPE: StaffText(_("Scope not allowed"), _DEVELOPER),
    Reason.TEMPORARILY_UNAVAILABLE: StaffText(_("Service unavailable"), _NOBODY),
    Reason.SERVER_ERROR: StaffText(_("Error in the service"), _US),
}


def staff_text_of(reason: str) -> StaffText:
    """The words for a recorded reason; one that this version does not know is shown as it is."""
    return WORDS.get(reason) or StaffText(reason, "")


def badge_of_login(event: LoginEvent) -> Badge:
    """How the login ended, in a few words."""
    return (
        Badge(ISSUED, "good") if event.is_issued else Badge(staff_text_of(event.reason).what, "bad")
    )
