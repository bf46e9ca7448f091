"""One table: why a login is refused, and how the protocol says it (contract 1, RFC 6749 5.2).

Each text names what happened and who can mend it. The reason is the private word, for the login
event; status, error and text are the public ones.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from taxpayers.credentials import Fault
from taxpayers.rules import Reason, Refusal
from tokens.endpoint.request import fault_named

_INVALID_REQUEST = "invalid_request"
_INVALID_CLIENT = "invalid_client"
_INVALID_GRANT = "invalid_grant"
_UNAUTHORISED = "unauthorised_client"  # the specification's spelling


@dataclass(frozen=True, slots=True)
class OAuthError:
    """How a refusal goes over the wire. `text` may hold {since}, {detail} and {ask}."""

    status: int
    error: str
    text: str


ERRORS: dict[Reason, OAuthError] = {
    Reason.METHOD_NOT_ALLOWED: OAuthError(
        405,
        _INVALID_REQUEST,
        "The login takes POST only. The developer of the ERP system must change the request.",
    ),
    Reason.INSECURE_TRANSPORT: OAuthError(
        400,
        _INVALID_REQUEST,
        "This request came without HTTPS, so its secret may have been read on the way. The"
        " developer of the ERP system must use an https address and have the secret replaced.",
    ),
    Reason.MALFORMED_REQUEST: OAuthError(
        400,
        _INVALID_REQUEST,
        "The request is malformed: {detail}. The developer of the ERP system must correct it.",
    ),
    Reason.MISSING_PARAMETER: OAuthError(
        400,
        _INVALID_REQUEST,
        "The parameter {detail} is missing or empty. The developer of the ERP system must send it"
        " in the form body.",
    ),
    Reason.UNSUPPORTED_GRANT_TYPE: OAuthError(
        400,
        "unsupported_grant_type",
        "grant_type must be exactly client_credentials. The developer of the ERP system must"
        " correct it.",
    ),
    Reason.MALFORMED_ON_BEHALF_OF: OAuthError(
        400,
        _INVALID_REQUEST,
        "The header onbehalfof is wrong: {detail}. The developer of the ERP system must send it"
        " once, as TIN or TIN:ROB, or leave it out to log in as the taxpayer itself.",
    ),
    Reason.MALFORMED_CREDENTIALS: OAuthError(
        400,
        _INVALID_CLIENT,
        "{detail} The operator of the ERP system must correct its settings.",
    ),
    Reason.INVALID_CREDENTIALS: OAuthError(
        400,
        _INVALID_CLIENT,
        "client_id or client_secret is wrong. The operator of the ERP system must compare both"
        " with what was handed over at registration, or have a new secret issued.",
    ),
    Reason.SECRET_EXPIRED: OAuthError(
        400,
        _INVALID_CLIENT,
        "This client_secret expired on {since}. Whoever rotates the secrets of this ERP system must"
        " put a new one in place.",
    ),
    Reason.SECRET_REVOKED: OAuthError(
        400,
        _INVALID_CLIENT,
        "This client_secret was revoked on {since}. Whoever rotates the secrets of this ERP system"
        " must put the new one in place.",
    ),
    Reason.RATE_LIMITED: OAuthError(
        429,
        _INVALID_REQUEST,
        "Too many logins. Wait as long as Retry-After says. The developer of the ERP system must"
        " reuse a token until shortly before it expires, and wait longer after each failure.",
    ),
    Reason.SYSTEM_USER_BLOCKED: OAuthError(
        400,
        _UNAUTHORISED,
        "This system user was blocked on {since}. Ask the tax authority why, and to unblock it.",
    ),
    Reason.SYSTEM_USER_EXPIRED: OAuthError(
        400,
        _UNAUTHORISED,
        "This system user expired on {since}. Ask the tax authority to extend it.",
    ),
    Reason.TAXPAYER_INACTIVE: OAuthError(
        400,
        _UNAUTHORISED,
        "The taxpayer of this system user is not active. Ask the tax authority.",
    ),
    Reason.NOT_AN_INTERMEDIARY: OAuthError(
        400,
        _UNAUTHORISED,
        "The taxpayer of this system user is not registered as an intermediary, so it cannot use"
        " onbehalfof. Ask the tax authority, or leave the header out.",
    ),
    Reason.INTERMEDIARY_INACTIVE: OAuthError(
        400,
        _UNAUTHORISED,
        "The registration as an intermediary is not active{since_clause}. Ask the tax authority.",
    ),
    Reason.NO_PERMISSION: OAuthError(
        400,
        _INVALID_GRANT,
        "The taxpayer named by onbehalfof has granted this intermediary no permission, or the"
        " number is wrong. The represented taxpayer must grant it.",
    ),
    Reason.PERMISSION_NOT_YET_VALID: OAuthError(
        400,
        _INVALID_GRANT,
        "The permission from the taxpayer named by onbehalfof is valid only from {since}. The"
        " represented taxpayer can change that.",
    ),
    Reason.PERMISSION_EXPIRED: OAuthError(
        400,
        _INVALID_GRANT,
        "The permission from the taxpayer named by onbehalfof expired on {since}. The represented"
        " taxpayer must grant it again.",
    ),
    Reason.PERMISSION_REVOKED: OAuthError(
        400,
        _INVALID_GRANT,
        "The permission from the taxpayer named by onbehalfof was revoked on {since}. The"
        " represented taxpayer must grant it again.",
    ),
    Reason.INVALID_SCOPE: OAuthError(
        400,
        "invalid_scope",
        "The scope {detail} is unknown, or this client may have none of what it asks for. The"
        " developer of the ERP system must correct scope, or leave it out.",
    ),
    Reason.TEMPORARILY_UNAVAILABLE: OAuthError(
        503,
        "temporarily_unavailable",
        "The service cannot answer right now. Nothing is wrong with the request: try again after"
        " the time in Retry-After, and wait longer after each failure.",
    ),
    Reason.SERVER_ERROR: OAuthError(
        500,
        "server_error",
        "Something went wrong on our side. Nothing needs to be changed on yours; if it lasts,"
        " report the reference.",
    ),
}

# Of a denial by the back-off: RATE_LIMITED as well, but another cause, and another one mends it.
# It is said of ids that do not exist, too.
TOO_MANY_FAILED = (
    "Too many failed logins. Wait as long as Retry-After says. The operator of the ERP system must"
    " compare client_id and client_secret with what was handed over at registration, or have a new"
    " secret issued."
)

_FAULTS = {
    Fault.BLANKS: "{parameter} has blanks around it.",
    Fault.SWAPPED: "client_id and client_secret are swapped: {parameter} holds the other one.",
    Fault.OTHER_ENVIRONMENT: "{parameter} belongs to the other environment (live and test have"
    " credentials and addresses of their own).",
    Fault.PLACEHOLDER: "{parameter} is a placeholder, not a value that was issued.",
    Fault.CUT_OFF: "{parameter} is cut off: characters are missing.",
    Fault.MISTYPED: "{parameter} was changed on the way: its checksum is wrong.",
    Fault.FOREIGN: "{parameter} is not of this service: what it issues begins with ci_ for an id"
    " and cs_ for a secret.",
}
_NOT_ALLOWED = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")  # RFC 6749 section 5.2


def describe(refusal: Refusal) -> str:
    """The public text of a refusal, in the characters that RFC 6749 allows."""
    detail = refusal.detail
    if refusal.reason is Reason.MALFORMED_CREDENTIALS:
        parameter, fault = fault_named(detail)
        detail = _FAULTS[fault].format(parameter=parameter)
    elif refusal.reason is Reason.INVALID_SCOPE:
        detail = detail[:64] or "asked for"
    since = format_moment(refusal.since) if refusal.since else "an unknown date"
    text = ERRORS[refusal.reason].text.format(
        detail=detail, since=since, since_clause=f" since {since}" if refusal.since else ""
    )
    return _NOT_ALLOWED.sub("?", text)


def format_moment(moment: datetime) -> str:
    """A moment as people read it: in the authority's time zone, with the offset."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M:%S} (UTC{local:%z})"
