"""Why logins are refused, in the staff's words, and who can mend it (contract 1, Refusals)."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from taxpayers.rules import Reason

REASONS: dict[str, Any] = {
    Reason.METHOD_NOT_ALLOWED: _("Not sent with POST"),
    Reason.INSECURE_TRANSPORT: _("Sent without HTTPS"),
    Reason.MALFORMED_REQUEST: _("Malformed request"),
    Reason.MISSING_PARAMETER: _("Parameter missing"),
    Reason.UNSUPPORTED_GRANT_TYPE: _("Wrong grant type"),
    Reason.MALFORMED_ON_BEHALF_OF: _("Malformed onbehalfof"),
    Reason.MALFORMED_CREDENTIALS: _("Malformed credentials"),
    Reason.INVALID_CREDENTIALS: _("Wrong client ID or secret"),
    Reason.SECRET_EXPIRED: _("Secret expired"),
    Reason.SECRET_REVOKED: _("Secret revoked"),
    Reason.RATE_LIMITED: _("Too many logins"),
    Reason.SYSTEM_USER_BLOCKED: _("System user blocked"),
    Reason.SYSTEM_USER_EXPIRED: _("System user expired"),
    Reason.TAXPAYER_INACTIVE: _("Taxpayer not active"),
    Reason.NOT_AN_INTERMEDIARY: _("Not an intermediary"),
    Reason.INTERMEDIARY_INACTIVE: _("Intermediary not active"),
    Reason.NO_PERMISSION: _("No permission"),
    Reason.PERMISSION_NOT_YET_VALID: _("Permission not yet valid"),
    Reason.PERMISSION_EXPIRED: _("Permission expired"),
    Reason.PERMISSION_REVOKED: _("Permission revoked"),
    Reason.INVALID_SCOPE: _("Scope not allowed"),
    Reason.TEMPORARILY_UNAVAILABLE: _("Service unavailable"),
    Reason.SERVER_ERROR: _("Error in the service"),
}

_DEVELOPER = _("The developer of the ERP system")
_OPERATOR = _("The operator of the ERP system")
_ROTATES = _("Whoever rotates the secrets of the ERP system")
_AUTHORITY = _("The tax authority")
_REPRESENTED = _("The represented taxpayer")
_NOBODY = _("Nobody: the ERP system tries again later")
_US = _("The operators of this service")

MENDED_BY: dict[str, Any] = {
    Reason.METHOD_NOT_ALLOWED: _DEVELOPER,
    Reason.INSECURE_TRANSPORT: _DEVELOPER,
    Reason.MALFORMED_REQUEST: _DEVELOPER,
    Reason.MISSING_PARAMETER: _DEVELOPER,
    Reason.UNSUPPORTED_GRANT_TYPE: _DEVELOPER,
    Reason.MALFORMED_ON_BEHALF_OF: _DEVELOPER,
    Reason.MALFORMED_CREDENTIALS: _OPERATOR,
    Reason.INVALID_CREDENTIALS: _OPERATOR,
    Reason.SECRET_EXPIRED: _ROTATES,
    Reason.SECRET_REVOKED: _ROTATES,
    Reason.RATE_LIMITED: _DEVELOPER,
    Reason.SYSTEM_USER_BLOCKED: _AUTHORITY,
    Reason.SYSTEM_USER_EXPIRED: _AUTHORITY,
    Reason.TAXPAYER_INACTIVE: _AUTHORITY,
    Reason.NOT_AN_INTERMEDIARY: _AUTHORITY,
    Reason.INTERMEDIARY_INACTIVE: _AUTHORITY,
    Reason.NO_PERMISSION: _REPRESENTED,
    Reason.PERMISSION_NOT_YET_VALID: _REPRESENTED,
    Reason.PERMISSION_EXPIRED: _REPRESENTED,
    Reason.PERMISSION_REVOKED: _REPRESENTED,
    Reason.INVALID_SCOPE: _DEVELOPER,
    Reason.TEMPORARILY_UNAVAILABLE: _NOBODY,
    Reason.SERVER_ERROR: _US,
}
