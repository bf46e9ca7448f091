"""One table: what each reason for a refused login means (contract 1, Refusals; RFC 6749 5.2).

To add a reason: raise `Refused` with it where the fault is found, and give it a row here. The
answer, the record, the metrics, the staff pages and the explanation of a login all follow. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import partial

from taxpayers.actions import marked as _
from taxpayers.credential_kind import CredentialKind, by_kind
from taxpayers.facts.values import ASSERTION, CERTIFICATE
from taxpayers.rules import OWN_TAXPAYER, RegistryReason


class ProtocolReason(StrEnum):
    """Why a login is refused before or after the registry decides: stable names (contract 1)."""

    METHOD_NOT_ALLOWED = "method_not_allowed"
    INSECURE_TRANSPORT = "insecure_transport"
    MALFORMED_REQUEST = "malformed_request"
    MISSING_PARAMETER = "missing_parameter"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    MALFORMED_ON_BEHALF_OF = "malformed_on_behalf_of"
    MALFORMED_CREDENTIALS = "malformed_credentials"
    INVALID_CREDENTIALS = "invalid_credentials"
    RATE_LIMITED = "rate_limited"
    USE_DPOP_NONCE = "use_dpop_nonce"
    INVALID_DPOP_PROOF = "invalid_dpop_proof"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    SERVER_ERROR = "server_error"


class Check(Enum):
    """The checks of a login, in the contract's order; each value is its statement for staff."""

    METHOD = _("Sent with POST")
    TRANSPORT = _("Sent over HTTPS")
    REQUEST = _("Request well-formed")
    PARAMETERS = _("All parameters present")
    GRANT_TYPE = _("Grant type is client_credentials")
    ON_BEHALF_OF = _("Header onbehalfof well-formed")
    CREDENTIALS_FORM = (
        _("Client ID and secret have the right form"),
        _("Client ID and assertion have the right form"),
        _("Client ID and certificate have the right form"),
    )
    CREDENTIALS = (
        _("Client ID and secret correct"),
        _("Client ID, key and its signature correct"),
        _("Client ID and certificate correct"),
    )
    SECRET_EXPIRY = (
        _("Secret not expired"),
        _("Key not expired"),
        _("Registration of the certificate not expired"),
    )
    SECRET_REVOCATION = (
        _("Secret not revoked"),
        _("Key not revoked"),
        _("Registration of the certificate not revoked"),
    )
    SOURCE_NETWORK = (
        _("From a network from where the secret may be used"),
        _("From a network from where the key may be used"),
        _("From a network from where the certificate may be used"),
    )
    RATE_LIMIT = _("Client within its limit of logins")
    TOKEN_BINDING = _("Proves what its tokens must be bound to")
    BLOCK = _("System user not blocked")
    SYSTEM_USER_EXPIRY = _("System user not expired")
    TAXPAYER = _("Its taxpayer active")
    INTERMEDIARY = _("Its taxpayer is an intermediary")
    INTERMEDIARY_ACTIVE = _("Intermediary active")
    LIMIT = _("System user may log in for this taxpayer")
    PERMISSION = _("The taxpayer granted a permission")
    PERMISSION_IN_FORCE = _("A permission is valid")
    PERMISSIONS_LIMIT = _("System user may use one of the permissions granted")
    SCOPE = _("Client may have the scope")

    def __init__(self, question: str, of_key: str = "", of_certificate: str = "") -> None:
        self._questions = by_kind(question, of_key or question, of_certificate or question)

    def question(self, kind: CredentialKind = CredentialKind.SECRET) -> str:
        """What is checked of a login with this kind, in English."""
        return self._questions[kind]


# Checks of a login on behalf of another taxpayer only.
ON_BEHALF_CHECKS = frozenset(
    {
        Check.INTERMEDIARY,
        Check.INTERMEDIARY_ACTIVE,
        Check.PERMISSION,
        Check.PERMISSION_IN_FORCE,
        Check.PERMISSIONS_LIMIT,
    }
)

# Details of refusals that have a text.
NO_CREDENTIALS, USED_BEFORE = "no_credentials", "used_before"
_OWN = {
    OWN_TAXPAYER: _(
        "onbehalfof names the taxpayer of this system user itself. The developer of the ERP system"
        " must leave the header out to log in as its own taxpayer."
    )
}
_DEVELOPER = _("The developer of the ERP system")
_OPERATOR = _("The operator of the ERP system")
_ROTATES = _("The person who rotates the secrets of the ERP system")
_AUTHORITY = _("The tax authority")
_ADMINISTRATOR = _("The administrator of the intermediary")
_REPRESENTED = _("The represented taxpayer")
_NOTHING_TO_FIX = _("Nothing to fix: the ERP system tries again later")
_US = _("The operators of this service")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a reason means: on the wire, to staff, and to the record.

    The catalogues have `text` and `staff_text` of each; other texts are marked for them.
    """

    status: int
    error: str
    text: str  # public; has {since}, {parameter}, {fault}, {detail}, never what was sent
    staff_text: str  # for staff, and as `fixed_by` on the public page of the reason
    fixed_by: str
    check: Check | None
    without_date: str = ""  # replaces `text`, as the next three and `of_detail` do
    without_detail: str = ""
    of_assertion: str = ""  # where a client_assertion was sent
    of_certificate: str = ""  # where a client certificate came
    spoken: str = ""  # as the authority itself says it to a caller
    of_detail: Mapping[str, str] = field(default_factory=dict)
    staff_texts: Mapping[str | None, str] = field(default_factory=dict)  # by kind of credential
    counts_as_failure: bool = False  # slows its caller down, and uses up no limit
    recorded: bool = True  # as a login event

    def staff_text_of(self, kind: CredentialKind | None) -> str:
        """What was wrong with a login with this kind, in English; None: true for each kind."""
        return self.staff_texts.get(kind, self.staff_text)


_invalid_request = partial(Refusal, 400, "invalid_request")
_invalid_client = partial(Refusal, 400, "invalid_client")
_invalid_grant = partial(Refusal, 400, "invalid_grant")
# RFC 9449 section 5; only for clients whose tokens must be bound to a key.
_invalid_dpop_proof = partial(Refusal, 400, "invalid_dpop_proof")
_unauthorised_client = partial(Refusal, 400, "unauthorised_client")  # the specification's spelling

_PARAMETERS = {ASSERTION: CredentialKind.KEY, CERTIFICATE: CredentialKind.CERTIFICATE}


def kind_named_by(parameter: str) -> CredentialKind:
    """What a client tried to log in with, from the parameter that its refusal names."""
    return _PARAMETERS.get(parameter, CredentialKind.SECRET)


REFUSALS: Mapping[str, Refusal] = {
    ProtocolReason.METHOD_NOT_ALLOWED: Refusal(
        *(405, "invalid_request"),
        "This address takes POST only. The developer of the ERP system must change the request.",
        "Not sent with POST",
        _DEVELOPER,
        Check.METHOD,
    ),
    ProtocolReason.INSECURE_TRANSPORT: _invalid_request(
        "This request came without HTTPS, so its secret may have been read on the way. The"
        " developer of the ERP system must use an https address and have the secret replaced.",
        "Sent without HTTPS",
        _DEVELOPER,
        Check.TRANSPORT,
    ),
    ProtocolReason.MALFORMED_REQUEST: _invalid_request(
        "The request is malformed: {detail}. The developer of the ERP system must correct it.",
        "Malformed request",
        _DEVELOPER,
        Check.REQUEST,
    ),
    ProtocolReason.MISSING_PARAMETER: _invalid_request(
        "The parameter {parameter} is missing or empty. The developer of the ERP system must"
        " send it in the form body.",
        "Parameter missing",
        _DEVELOPER,
        Check.PARAMETERS,
        of_detail={
            NO_CREDENTIALS: _(
                "The parameter client_secret is missing or empty, and no client_assertion and no"
                " client certificate came in its place. The developer of the ERP system must send"
                " what the client logs in with."
            ),
        },
    ),
    ProtocolReason.UNSUPPORTED_GRANT_TYPE: Refusal(
        *(400, "unsupported_grant_type"),
        "grant_type must be exactly client_credentials. The developer of the ERP system must"
        " correct it.",
        "Wrong grant type",
        _DEVELOPER,
        Check.GRANT_TYPE,
    ),
    ProtocolReason.MALFORMED_ON_BEHALF_OF: _invalid_request(
        "The header onbehalfof is wrong: {detail}. The developer of the ERP system must send it"
        " once, as TIN or TIN:ROB, or leave it out to log in as the taxpayer itself.",
        "Malformed onbehalfof",
        _DEVELOPER,
        Check.ON_BEHALF_OF,
    ),
    ProtocolReason.MALFORMED_CREDENTIALS: _invalid_client(
        "{fault} The operator of the ERP system must correct its settings.",
        "Malformed credentials",
        _OPERATOR,
        Check.CREDENTIALS_FORM,
        of_assertion=_("{fault} The developer of the ERP system must correct it."),
        of_certificate="{fault}",
    ),
    ProtocolReason.INVALID_CREDENTIALS: _invalid_client(
        "client_id or client_secret is wrong. The operator of the ERP system must compare both"
        " with what was issued at registration, or have a new secret issued.",
        "Wrong client ID, secret, key or certificate",
        _OPERATOR,
        Check.CREDENTIALS,
        of_assertion=_(
            "This client_assertion is not accepted: the client or the key that it names is not"
            " registered, or its signature is wrong. The developer of the ERP system must sign it"
            " with a key that is registered for this client."
        ),
        of_detail={
            USED_BEFORE: _(
                "This client_assertion is signed right, but its jti was used before. The developer"
                " of the ERP system must make a new one for each login."
            ),
        },
        of_certificate=_(
            "This certificate is not accepted: client_id is unknown, or no name in the certificate"
            " is registered for it. The operator of the ERP system must compare client_id, and the"
            " subject of the certificate, with what was registered."
        ),
        staff_texts=by_kind(
            _("Wrong client ID or secret"),
            _("Wrong client ID or key"),
            _("Wrong client ID or certificate"),
        ),
        counts_as_failure=True,
    ),
    RegistryReason.SECRET_EXPIRED: _invalid_client(
        "This client_secret expired on {since}. The person who rotates the secrets of this ERP"
        " system must put a new one in place.",
        "Secret, key or certificate expired",
        _ROTATES,
        Check.SECRET_EXPIRY,
        of_assertion=_(
            "The key of this client_assertion expired on {since}. The person who rotates the"
            " secrets of this ERP system must have a new key registered."
        ),
        of_certificate=_(
            "The registration of this certificate expired on {since}. The person who rotates the"
            " secrets of this ERP system must have it registered again."
        ),
        staff_texts=by_kind(_("Secret expired"), _("Key expired"), _("Certificate expired")),
        counts_as_failure=True,
    ),
    RegistryReason.SECRET_REVOKED: _invalid_client(
        "This client_secret was revoked on {since}. The person who rotates the secrets of this"
        " ERP system must put the new one in place.",
        "Secret, key or certificate revoked",
        _ROTATES,
        Check.SECRET_REVOCATION,
        of_assertion=_(
            "The key of this client_assertion was removed on {since}. The person who rotates the"
            " secrets of this ERP system must put the new one in place."
        ),
        of_certificate=_(
            "The registration of this certificate was removed on {since}. The person who rotates"
            " the secrets of this ERP system must put the new certificate in place."
        ),
        staff_texts=by_kind(_("Secret revoked"), _("Key revoked"), _("Certificate revoked")),
        counts_as_failure=True,
    ),
    # Counted as a failure, so that a secret that was stolen uses up nothing of its owner's limit.
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: _invalid_client(
        "These credentials may be used from certain networks only, and this login came from"
        " another address: {detail}. The operator of the ERP system must log in from one of"
        " these networks, or ask the tax authority to add this address.",
        "Not from an allowed network",
        _OPERATOR,
        Check.SOURCE_NETWORK,
        without_detail=_(
            "These credentials may be used from certain networks only, and the address that this"
            " login came from cannot be known. The operator of the ERP system must report the"
            " reference to the tax authority."
        ),
        spoken=_(
            "Your login came from an address that is not among the networks that we agreed for it."
            " Log in from one of them, or tell us the address to add."
        ),
        counts_as_failure=True,
    ),
    ProtocolReason.RATE_LIMITED: Refusal(
        *(429, "invalid_request"),
        "Too many logins. Wait as long as Retry-After says. The developer of the ERP system"
        " must reuse a token until shortly before it expires, and wait longer after each"
        " failure.",
        "Too many logins",
        _DEVELOPER,
        Check.RATE_LIMIT,
        recorded=False,
    ),
    RegistryReason.DPOP_PROOF_MISSING: _invalid_dpop_proof(
        "This client gets only tokens that are bound to a key (DPoP, RFC 9449), and the request"
        " has no header DPoP. The developer of the ERP system must send a proof in it.",
        "DPoP proof missing",
        _DEVELOPER,
        Check.TOKEN_BINDING,
    ),
    ProtocolReason.INVALID_DPOP_PROOF: _invalid_dpop_proof(
        "{fault} The developer of the ERP system must correct it.",
        "DPoP proof wrong",
        _DEVELOPER,
        Check.TOKEN_BINDING,
    ),
    ProtocolReason.USE_DPOP_NONCE: Refusal(
        *(400, "use_dpop_nonce"),
        "The proof in the header DPoP must have the nonce that this answer carries in the"
        " header DPoP-Nonce. Nothing is wrong: the ERP system sends the request again with a"
        " new proof. If its library does not do so, the developer of the ERP system must (RFC"
        " 9449 section 8).",
        "DPoP nonce missing or too old",
        _DEVELOPER,
        Check.TOKEN_BINDING,
        recorded=False,
    ),
    RegistryReason.CERTIFICATE_MISSING: _invalid_request(
        "This client gets only tokens that are bound to its TLS certificate (RFC 8705), and the"
        " connection came without one. The developer of the ERP system must connect with the"
        " client certificate, to the token_endpoint of mtls_endpoint_aliases in the metadata of"
        " this service.",
        "TLS certificate missing",
        _DEVELOPER,
        Check.TOKEN_BINDING,
    ),
    RegistryReason.SYSTEM_USER_BLOCKED: _unauthorised_client(
        "This system user was blocked on {since}. Ask the tax authority why, and to unblock it.",
        "System user blocked",
        _AUTHORITY,
        Check.BLOCK,
        spoken=_(
            "We blocked your system user on {since}. I will find out why, and tell you what we"
            " need to unblock it."
        ),
    ),
    RegistryReason.SYSTEM_USER_EXPIRED: _unauthorised_client(
        "This system user expired on {since}. Ask the tax authority to extend it.",
        "System user expired",
        _AUTHORITY,
        Check.SYSTEM_USER_EXPIRY,
        spoken=_("Your system user expired on {since}. We can extend it if you still use it."),
    ),
    RegistryReason.TAXPAYER_INACTIVE: _unauthorised_client(
        "The taxpayer of this system user is not active. Ask the tax authority.",
        "Taxpayer not active",
        _AUTHORITY,
        Check.TAXPAYER,
        spoken=_("The taxpayer is not active in our registry. I will find out why, and tell you."),
    ),
    RegistryReason.NOT_AN_INTERMEDIARY: _unauthorised_client(
        "The taxpayer of this system user is not registered as an intermediary, so it cannot"
        " use onbehalfof. Ask the tax authority, or leave the header out.",
        "Not an intermediary",
        _AUTHORITY,
        Check.INTERMEDIARY,
        spoken=_(
            "Your company is not registered as an intermediary, so it cannot use onbehalfof. We can"
            " register it; for your own documents leave the header out."
        ),
        of_detail=_OWN,
    ),
    RegistryReason.INTERMEDIARY_INACTIVE: _unauthorised_client(
        "The registration as an intermediary is not active since {since}. Ask the tax authority.",
        "Intermediary not active",
        _AUTHORITY,
        Check.INTERMEDIARY_ACTIVE,
        without_date=_("The registration as an intermediary is not active. Ask the tax authority."),
        spoken=_(
            "Your registration as an intermediary is not active. I will find out why, and tell you"
            " what we need to activate it."
        ),
    ),
    RegistryReason.OWN_TAXPAYER_NOT_ALLOWED: _unauthorised_client(
        "This system user gets tokens only on behalf of other taxpayers, none for its own one."
        " The developer of the ERP system must send the header onbehalfof with each login, also"
        " when a library renews the token, or use another system user.",
        "Limited to acting for others",
        _DEVELOPER,
        Check.LIMIT,
    ),
    RegistryReason.TAXPAYER_NOT_ALLOWED: _unauthorised_client(
        "This system user may act for certain taxpayers only, and the one named by onbehalfof"
        " is not among them, or the number is wrong. The administrator of the intermediary must"
        " use another system user for it, or ask the tax authority to change the limit.",
        "Taxpayer not allowed for this system user",
        _ADMINISTRATOR,
        Check.LIMIT,
        spoken=_(
            "This system user may act for certain taxpayers only, and this one is not among them."
            " Check the number, use another system user, or let your administrator ask us to change"
            " the limit."
        ),
    ),
    RegistryReason.NO_PERMISSION: _invalid_grant(
        "The taxpayer named by onbehalfof has granted this intermediary no permission, or the"
        " number is wrong. The represented taxpayer must grant it.",
        "No permission",
        _REPRESENTED,
        Check.PERMISSION,
        of_detail=_OWN,
    ),
    RegistryReason.PERMISSION_NOT_YET_VALID: _invalid_grant(
        "The permission from the taxpayer named by onbehalfof is valid only from {since}. The"
        " represented taxpayer can change that.",
        "Permission not yet valid",
        _REPRESENTED,
        Check.PERMISSION_IN_FORCE,
    ),
    RegistryReason.PERMISSION_EXPIRED: _invalid_grant(
        "The permission from the taxpayer named by onbehalfof expired on {since}. The"
        " represented taxpayer must grant it again.",
        "Permission expired",
        _REPRESENTED,
        Check.PERMISSION_IN_FORCE,
    ),
    RegistryReason.PERMISSION_REVOKED: _invalid_grant(
        "The permission from the taxpayer named by onbehalfof was revoked on {since}. The"
        " represented taxpayer must grant it again.",
        "Permission revoked",
        _REPRESENTED,
        Check.PERMISSION_IN_FORCE,
    ),
    RegistryReason.PERMISSIONS_NOT_ALLOWED: _unauthorised_client(
        "This system user is limited to some permissions, and the taxpayer named by onbehalfof"
        " has granted none of these. The administrator of the intermediary must use another"
        " system user for it, or ask the tax authority to change the limit.",
        "Permissions not allowed for this system user",
        _ADMINISTRATOR,
        Check.PERMISSIONS_LIMIT,
        spoken=_(
            "This system user may use certain permissions only, and the taxpayer has granted none"
            " of them. Use another system user, or let your administrator ask us to change the"
            " limit."
        ),
    ),
    RegistryReason.INVALID_SCOPE: Refusal(
        *(400, "invalid_scope"),
        # The name of the scope is not repeated: it could be a secret in the wrong place.
        "A scope that was asked for is unknown, or there is not exactly one space between two"
        " of them. The developer of the ERP system must correct scope, or leave it out.",
        "Scope not allowed",
        _DEVELOPER,
        Check.SCOPE,
        without_detail=_(
            "This client may have none of the scopes that it asks for. The developer of"
            " the ERP system must correct scope, or leave it out."
        ),
    ),
    ProtocolReason.TEMPORARILY_UNAVAILABLE: Refusal(
        *(503, "temporarily_unavailable"),
        "The service cannot answer right now. Nothing is wrong with the request: try again"
        " after the time in Retry-After, and wait longer after each failure.",
        "Service unavailable",
        _NOTHING_TO_FIX,
        None,
        recorded=False,
    ),
    ProtocolReason.SERVER_ERROR: Refusal(
        *(500, "server_error"),
        "Something went wrong on our side. Nothing needs to be changed on yours; if it lasts,"
        " report the reference.",
        "Error in the service",
        _US,
        None,
    ),
}
