"""The public text of a refusal: `error_description` (contract 1, RFC 6749 section 5.2)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache

from django.utils import timezone

from taxpayers.actions import marked as _
from taxpayers.credentials import Fault
from taxpayers.facts.values import ASSERTION, CERTIFICATE
from taxpayers.moments import moment_text
from taxpayers.rules import Refused
from tokens.client_auth.assertion import AssertionFault
from tokens.client_auth.certificate import CertificateFault
from tokens.dpop.proof import HEADER, ProofFault
from tokens.http import error_description
from tokens.rate_limits.throttle import ThrottleCause
from tokens.refusals.table import REFUSALS, ProtocolReason

# The texts of `rate_limited` where callers back off: another cause, and another person can fix it.
# Callers of ids that do not exist read the first one, too.
TOO_MANY: Mapping[ThrottleCause | None, str] = {
    ThrottleCause.FAILURES: _(
        "Too many failed logins. Wait as long as Retry-After says. The operator of the ERP system"
        " must compare client_id and client_secret with what was issued at registration, or have a"
        " new secret issued."
    ),
    ThrottleCause.REJECTIONS: _(
        "Too many requests from this address were refused, and so is this one. Wait as long as"
        " Retry-After says to read why, or look at an earlier refusal. The developer of the ERP"
        " system must correct the request: a right one is answered at once."
    ),
    ThrottleCause.REVOCATIONS: _(
        "Too many tokens were ended. Wait as long as Retry-After says. The developer of the ERP"
        " system must end each token once, and only when it is not needed any more."
    ),
}

_FAULTS: Mapping[str, str] = {
    Fault.BLANKS: _("{parameter} has blanks or a line break around it."),
    Fault.QUOTED: _("{parameter} has quotation marks, or an invisible byte order mark, around it."),
    Fault.SWAPPED: _("client_id and client_secret are swapped: {parameter} holds the other one."),
    Fault.OTHER_PARTY: _(
        "{parameter} is of another kind of client: ci_ and cs_ are of an ERP system, which gets"
        " tokens, pa_ and ps_ of a protected API, which asks about tokens."
    ),
    Fault.OTHER_ENVIRONMENT: _(
        "{parameter} belongs to the other environment (live and test have different credentials and"
        " addresses)."
    ),
    Fault.PLACEHOLDER: _("{parameter} is a placeholder, not a value that was issued."),
    Fault.CUT_OFF: _("{parameter} is cut off: characters are missing."),
    Fault.MISTYPED: _("{parameter} was changed on the way: its checksum is wrong."),
    Fault.FOREIGN: _(
        "{parameter} is not of this service: what it issues begins with ci_ for an id and cs_ for a"
        " secret, of a protected API with pa_ and ps_."
    ),
    AssertionFault.TOO_LONG: _("{parameter} is longer than 4096 characters."),
    AssertionFault.UNREADABLE: _(
        "{parameter} is not a signed JWT in its compact form, or one of its values has another type"
        " than RFC 7519 says."
    ),
    AssertionFault.ALGORITHM: _("{parameter} must be signed with PS256, ES256 or EdDSA."),
    AssertionFault.TYPE: _(
        "typ in the header of {parameter} must be client-authentication+jwt or JWT, or be left out."
    ),
    AssertionFault.CRITICAL: _("{parameter} has crit in its header, which is not supported."),
    AssertionFault.KID: _("{parameter} must name its key with kid in its header."),
    AssertionFault.CLIENT: _("iss and sub of {parameter} must both be the client_id."),
    AssertionFault.OTHER_CLIENT: _("sub of {parameter} is not the client_id in the form."),
    AssertionFault.AUDIENCE: _(
        "aud of {parameter} must be the issuer, as the metadata of this service name it, and"
        " nothing else: not the address of the token endpoint."
    ),
    AssertionFault.EXPIRY: _("{parameter} must have exp."),
    AssertionFault.MILLISECONDS: _(
        "exp, nbf and iat of {parameter} must be seconds since 1970, not milliseconds."
    ),
    AssertionFault.JTI: _(
        "{parameter} must have a jti of at most 128 characters, another one for each login."
    ),
    AssertionFault.EXPIRED: _(
        "{parameter} has expired by the clock of this service. Make a new one for each login."
    ),
    AssertionFault.TOO_FAR_AHEAD: _(
        "exp of {parameter} is more than 5 minutes ahead by the clock of this service."
    ),
    AssertionFault.NOT_YET_VALID: _(
        "nbf or iat of {parameter} is in the future by the clock of this service."
    ),
    CertificateFault.NOT_VERIFIED: _(
        "The client certificate was not accepted by the proxy of this service: it has expired, or"
        " no authority that the tax authority accepts has signed it. The operator of the ERP system"
        " must have a new one issued."
    ),
    CertificateFault.UNREADABLE: _(
        "The proxy of this service passed on a client certificate that cannot be read. Give the"
        " reference to the operators of this service."
    ),
    CertificateFault.TOO_LONG: _(
        "The client certificate is longer than 8192 bytes. The operator of the ERP system must have"
        " a shorter one issued."
    ),
    CertificateFault.TWICE: _(
        "The proxy of this service passed on two client certificates. Give the reference to the"
        " operators of this service."
    ),
    CertificateFault.EXPIRED: _(
        "The client certificate has expired by the clock of this service. The operator of the ERP"
        " system must put the new one in place."
    ),
    CertificateFault.NOT_YET_VALID: _(
        "The client certificate is not yet valid by the clock of this service. The operator of the"
        " ERP system must use it later, or the one before it."
    ),
    ProofFault.REPEATED: _("The header {parameter} is sent more than once."),
    ProofFault.TOO_LONG: _("The proof in the header {parameter} is longer than 4096 characters."),
    ProofFault.UNREADABLE: _(
        "The header {parameter} is not a signed JWT in its compact form, or one of its values has"
        " another type than RFC 9449 says."
    ),
    ProofFault.TYPE: _("typ in the header of the proof must be dpop+jwt."),
    ProofFault.ALGORITHM: _(
        "The proof must be signed with ES256 and a key on P-256, with PS256 and an RSA key, or with"
        " EdDSA and an Ed25519 key."
    ),
    ProofFault.CRITICAL: _("The proof has crit in its header, which is not supported."),
    ProofFault.METHOD: _("htm of the proof is not the method of the request."),
    ProofFault.TARGET: _(
        "htu of the proof is not the address of the request, as the metadata of this service name"
        " it."
    ),
    ProofFault.JTI: _(
        "The proof must have a jti of at most 128 characters, another one for each request."
    ),
    ProofFault.ISSUED_AT: _("The proof must have iat."),
    ProofFault.TOO_OLD: _(
        "iat of the proof is more than 60 seconds ago by the clock of this service. Make a new one"
        " for each request, and set the clock of the ERP system."
    ),
    ProofFault.NOT_YET_VALID: _(
        "iat of the proof is in the future by the clock of this service. Set the clock of the ERP"
        " system."
    ),
    ProofFault.TOKEN: _("ath of the proof is not the hash of the access token."),
    ProofFault.KEY: _(
        "jwk in the header of the proof must be a public key: EC on P-256, RSA with 2048 to 4096"
        " bits and the exponent 65537, or Ed25519."
    ),
    ProofFault.OTHER_KEY: _("The proof is signed with another key than the token is bound to."),
    ProofFault.SIGNATURE: _("The signature of the proof is wrong."),
    ProofFault.USED_BEFORE: _("This proof was used before. Make a new one for each request."),
}
# Placeholder for the fault on the public page of a reason.
_ANY_FAULT: Mapping[str, str] = {
    ProtocolReason.MALFORMED_CREDENTIALS: _(
        "client_id, client_secret, client_assertion or the client certificate does not have the"
        " right form: error_description names the fault."
    ),
    ProtocolReason.INVALID_DPOP_PROOF: _(
        "The proof in the header DPoP is wrong: error_description names the fault."
    ),
}
# What stands there for a date, a parameter and a detail.
_ANY_DATE = _("the date in error_description")
_ANY_PARAMETER = _("named in error_description")
_ANY_DETAIL = _("error_description names the fault")


def describe(
    refused: Refused, translate: Callable[[str], str] = str, *, is_spoken: bool = False
) -> str:
    """What happened and who can fix it, in the characters that RFC 6749 allows.

    A client gets it in English. Staff pages give `gettext`, to show it in their reader's language;
    `is_spoken`: as the authority says it to a caller.
    """
    refusal = REFUSALS[refused.reason]
    text = refusal.text
    if is_spoken and refusal.spoken:
        text = refusal.spoken
    elif refused.detail in refusal.of_detail:
        text = refusal.of_detail[refused.detail]
    elif refusal.of_assertion and refused.parameter == ASSERTION:
        text = refusal.of_assertion
    elif refusal.of_certificate and refused.parameter == CERTIFICATE:
        text = refusal.of_certificate
    elif refusal.without_date and refused.since is None:
        text = refusal.without_date
    elif refusal.without_detail and not refused.detail:
        text = refusal.without_detail
    if "{" in text or translate is not str:
        fault = _FAULTS[refused.detail] if refused.reason in _ANY_FAULT else ""
        since, told = refused.since, moment_text if is_spoken else format_moment_with_offset
        text = translate(text).format(
            since=told(since) if since else translate(_("an unknown date")),
            parameter=refused.parameter,
            detail=translate(refused.detail) if refused.detail else "",
            fault=fault and translate(fault).format(parameter=refused.parameter),
        )
    return _allowed(text)


_allowed = lru_cache(maxsize=256)(error_description)  # most are the same again and again


def describe_proof_fault(fault: ProofFault) -> str:
    """What is wrong with the proof that was sent with an access token."""
    return error_description(_FAULTS[fault].format(parameter=HEADER))


def describe_in_general(reason: str, translate: Callable[[str], str] = str) -> list[str]:
    """The texts that this reason can have, without what only one login's own text can name."""
    refusal = REFUSALS[reason]
    texts = [refusal.text, refusal.without_detail, refusal.of_assertion, refusal.of_certificate]
    texts += refusal.of_detail.values()
    if reason == ProtocolReason.RATE_LIMITED:
        texts += TOO_MANY.values()
    fault = _ANY_FAULT.get(reason, "")
    return [
        translate(text).format(
            since=translate(_ANY_DATE),
            parameter=translate(_ANY_PARAMETER),
            detail=translate(_ANY_DETAIL),
            fault=fault and translate(fault),
        )
        for text in texts
        if text not in ("", "{fault}")
    ]


def format_moment_with_offset(moment: datetime) -> str:
    """A moment in the authority's time zone, as `2026-11-21 18:00:00 (UTC+0800)`."""
    local = moment.astimezone(timezone.get_default_timezone())
    return f"{local:%Y-%m-%d %H:%M:%S} (UTC{local:%z})"
