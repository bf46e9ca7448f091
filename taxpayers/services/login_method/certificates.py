"""The names of certificates that system users log in with (RFC 8705); two live ones at most."""

from datetime import datetime
from typing import Any, Unpack

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.certificates.names import (
    CertificateName,
    NameFault,
    NameKind,
    UnusableName,
    read_name,
)
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
    NameFault.PRIVATE: gettext_lazy(
        "This is a PRIVATE key, and nothing was stored. Who has it can log in: the ERP system must"
        " make a new pair and have a new certificate issued."
    ),
    NameFault.CERTIFICATE: gettext_lazy(
        "This is no certificate. Give a PEM file that begins with -----BEGIN CERTIFICATE-----."
    ),
    NameFault.EMPTY_SUBJECT: gettext_lazy(
        "The subject is empty. Register one of the alternative names instead: DNS, URI or e-mail."
    ),
    NameFault.SUBJECT_DN: gettext_lazy(
        "This is no distinguished name. Give the certificate itself, or the name as RFC 4514 writes"
        " it, for example CN=erp,O=Aminah,C=MY: openssl x509 -in FILE -noout -subject -nameopt"
        " RFC2253"
    ),
    NameFault.SAN_DNS: gettext_lazy(
        "This is no complete host name without wildcards, for example erp.example.com."
    ),
    NameFault.SAN_URI: gettext_lazy("This is no complete URI, for example spiffe://example/erp."),
    NameFault.SAN_EMAIL: gettext_lazy("This is no e-mail address."),
    NameFault.TOO_LONG: gettext_lazy("A name has at most 1000 characters."),
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
    text: str,
    kind: NameKind | None = None,
    expires_at: datetime | None = None,
    **asked: Unpack[Asked],
) -> Credential:
    """Register a name in a certificate beside the present one.

    `kind` says what `text` is; None: a certificate in PEM, whose subject is registered. Valid until
    `expires_at`; None: for settings.SECRET_LIFETIME. Logins may come from the networks of the
    newest other one. Raises ServiceError if there would be more than two live ones, or if the
    system user does not log in with a certificate.
    """
    context = context_of(REGISTER_CLIENT_CERTIFICATE, **asked)
    owner = lock_to_change(system_user, context.by)
    if refusal := why_no_certificate(owner, context.at):
        raise ServiceError(refusal)
    networks = networks_for_new(owner, None)
    return create_certificate(owner, validate_name(text, kind), expires_at, networks, context)


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


def validate_name(text: str, kind: NameKind | None) -> CertificateName:
    """The name in the text. Raises ServiceError, which never shows any of it."""
    try:
        return read_name(text, kind)
    except UnusableName as unusable:
        raise ServiceError(str(_FAULTS[unusable.fault]), "invalid_certificate", "text") from None


def create_certificate(
    owner: SystemUser,
    name: CertificateName,
    expires_at: datetime | None,
    allowed_networks: str,
    context: ChangeContext,
    also: dict[str, Any] | None = None,
) -> Credential:
    """Create it in a free slot; `also` is stored in the history beside it."""
    former = owner.credentials.filter(lookup=name.lookup).first()
    if former is not None:
        _replace(former, context.at)
    row = Credential(
        system_user=owner,
        slot=free_slot(owner, context.at),
        lookup=name.lookup,
        hint=hint_of(name.lookup),
        certificate_name=str(name),
        allowed_networks=allowed_networks,
    )
    stored = {**(also or {}), "certificate_name": str(name)}
    return store_new(row, expires_at, _("the certificate"), context, stored)


def _replace(former: Credential, at: datetime) -> None:
    """Let no login find a name that has ended, so that it can be registered again.

    An authority gives a renewed certificate the same name. The old row stays, and so do the ends of
    the tokens that were issued with it.
    """
    if former.is_live(at):
        raise ServiceError(
            _("The name {name} is there already.").format(name=former.certificate_name)
        )
    former.lookup = f"{former.lookup}#{former.pk}"
    former.save(update_fields=["lookup"])
