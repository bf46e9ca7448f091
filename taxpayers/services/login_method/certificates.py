"""The certificates that system users log in with (RFC 8705); two live ones at most."""

from datetime import datetime
from typing import Any, Unpack

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.certificates import Subject, SubjectFault, UnusableSubject, read_subject
from taxpayers.credentials import hint_of
from taxpayers.models import Credential, SystemUser
from taxpayers.operations import Operation
from taxpayers.services.credential_changes import free_slot, store_new
from taxpayers.services.history import Asked, ChangeContext, context_of, makes
from taxpayers.services.limits.source_networks import networks_for_new
from taxpayers.services.live_credentials import why_no_room
from taxpayers.services.management_clients import lock_to_change
from taxpayers.validation import ServiceError

_FAULTS = {
    SubjectFault.PRIVATE: gettext_lazy(
        "This is a PRIVATE key, and nothing was stored. Who has it can log in: the ERP system must"
        " make a new pair and have a new certificate issued."
    ),
    SubjectFault.CERTIFICATE: gettext_lazy(
        "This is no certificate. Give a PEM file that begins with -----BEGIN CERTIFICATE-----."
    ),
    SubjectFault.EMPTY: gettext_lazy(
        "The subject of the certificate is empty. The ERP system must have one issued that names"
        " its company there."
    ),
    SubjectFault.NOT_PRINTABLE: gettext_lazy(
        "The subject of the certificate has characters that cannot be printed."
    ),
    SubjectFault.TOO_LONG: gettext_lazy(
        "The subject of a certificate has at most 1000 characters here."
    ),
}


def why_no_certificate(owner: SystemUser, at: datetime) -> str:
    """Why no certificate can be registered for it; empty if one can."""
    if owner.uses_certificate:
        return why_no_room(owner, at)
    return _(
        "{client_id} does not log in with a certificate. First change how it logs in to"
        " tls_client_auth."
    ).format(client_id=owner.client_id)


REGISTER_CLIENT_CERTIFICATE = Operation(
    actions.REGISTER_CLIENT_CERTIFICATE,
    marked("Register a new certificate"),
    marked(
        "A certificate that is valid now keeps working, so that the ERP system can change to the"
        " new one without a break. Then revoke the old one."
    ),
    refusal=why_no_certificate,
)


@makes(REGISTER_CLIENT_CERTIFICATE, "system_user")
def register_client_certificate(
    *,
    system_user: SystemUser,
    certificate: str,
    expires_at: datetime | None = None,
    **asked: Unpack[Asked],
) -> Credential:
    """Register the subject of a certificate (PEM) beside the present one.

    Valid until `expires_at`; None: for settings.SECRET_LIFETIME. Logins may come from the networks
    of the newest other one. Raises ServiceError if there would be more than two live ones, or if
    the system user does not log in with a certificate.
    """
    context = context_of(REGISTER_CLIENT_CERTIFICATE, **asked)
    owner = lock_to_change(system_user, context.by)
    if refusal := why_no_certificate(owner, context.at):
        raise ServiceError(refusal)
    subject, networks = validate_certificate(certificate), networks_for_new(owner, None)
    return create_certificate(owner, subject, expires_at, networks, context)


def why_not_taken() -> str:
    """Why no client can present a certificate; empty if they can."""
    if settings.MTLS_URL:
        return ""
    return _(
        "This service takes no client certificates yet, so no client could log in with one."
        " Its operators must set MTLS_URL first."
    )


def check_certificates_are_taken() -> None:
    """Raises ServiceError where no client can present a certificate."""
    if refusal := why_not_taken():
        raise ServiceError(refusal)


def validate_certificate(pem: str) -> Subject:
    """The subject of the certificate. Raises ServiceError, which never shows any of the text."""
    try:
        return read_subject(pem)
    except UnusableSubject as unusable:
        fault = str(_FAULTS[unusable.fault])
        raise ServiceError(fault, "invalid_certificate", "certificate") from None


def create_certificate(
    owner: SystemUser,
    subject: Subject,
    expires_at: datetime | None,
    allowed_networks: str,
    context: ChangeContext,
    also: dict[str, Any] | None = None,
) -> Credential:
    """Create it in a free slot; `also` is stored in the history beside it."""
    former = owner.credentials.filter(lookup=subject.lookup).first()
    if former is not None:
        _replace(former, context.at)
    row = Credential(
        system_user=owner,
        slot=free_slot(owner, context.at),
        lookup=subject.lookup,
        hint=hint_of(subject.lookup),
        certificate_name=subject.text,
        allowed_networks=allowed_networks,
    )
    stored = {**(also or {}), "certificate_name": subject.text}
    return store_new(row, expires_at, _("the certificate"), context, stored)


def _replace(former: Credential, at: datetime) -> None:
    """Let no login find a subject that has ended, so that it can be registered again.

    An authority gives a renewed certificate the same name. The old row stays, and so do the ends of
    the tokens that were issued with it.
    """
    if former.is_live(at):
        raise ServiceError(
            _("The name {name} is there already.").format(name=former.certificate_name)
        )
    former.lookup = f"{former.lookup}#{former.pk}"
    former.save(update_fields=["lookup"])
