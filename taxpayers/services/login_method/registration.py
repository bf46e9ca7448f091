"""Registers public keys (RFC 7523) and subjects of certificates (RFC 8705) to log in with."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Unpack

from django.conf import settings
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.certificates import UnusableSubject, read_subject
from taxpayers.client_keys import ClientKey, UnusableKey, key_name, read_client_keys
from taxpayers.credential_kind import CredentialKind
from taxpayers.credentials import hint_of
from taxpayers.models import MAX_LIVE_CREDENTIALS, Credential, SystemUser
from taxpayers.operations import Operation
from taxpayers.services.credential_changes import store_new
from taxpayers.services.history import Asked, context_of, makes
from taxpayers.services.live_credentials import why_no_room
from taxpayers.services.management_clients import lock_to_change
from taxpayers.validation import ServiceError, refuse_if

_NO_OTHER = {
    CredentialKind.KEY: marked(
        "{client_id} does not log in with a private key. First change how it logs in to"
        " private_key_jwt."
    ),
    CredentialKind.CERTIFICATE: marked(
        "{client_id} does not log in with a certificate. First change how it logs in to"
        " tls_client_auth."
    ),
}


def _why_no_other(kind: CredentialKind, owner: SystemUser, at: datetime) -> str:
    """Why none of this kind can be registered for it; empty if one can."""
    if owner.credential_kind is kind:
        return why_no_room(owner, at)
    return _(_NO_OTHER[kind]).format(client_id=owner.client_id)


REGISTER_CLIENT_KEY = Operation(
    actions.REGISTER_CLIENT_KEY,
    "Register a new key",
    "A key that is valid now keeps working, so that the ERP system can change to the new one"
    " without a break. Then revoke the old one.",
    refusal=partial(_why_no_other, CredentialKind.KEY),
)
REGISTER_CLIENT_CERTIFICATE = Operation(
    actions.REGISTER_CLIENT_CERTIFICATE,
    "Register a new certificate",
    "A certificate that is valid now keeps working, so that the ERP system can change to the"
    " new one without a break. Then revoke the old one.",
    refusal=partial(_why_no_other, CredentialKind.CERTIFICATE),
)


@makes((REGISTER_CLIENT_KEY, REGISTER_CLIENT_CERTIFICATE), "system_user")
def register_public_credential(
    *,
    system_user: SystemUser,
    keys: str = "",
    certificate: str | None = None,
    expires_at: datetime | None = None,
    allowed_networks: Collection[str] | None = None,
    **asked: Unpack[Asked],
) -> SystemUser:
    """Register these public keys (JWK, JWK Set or PEM), or the subject of the certificate (PEM).

    Valid until `expires_at` (None: for settings.SECRET_LIFETIME), from `allowed_networks` as for
    `issue_secret`. Raises ServiceError if the system user logs in with something else.
    """
    operation = REGISTER_CLIENT_KEY if certificate is None else REGISTER_CLIENT_CERTIFICATE
    context = context_of(operation, **asked)
    owner = lock_to_change(system_user, context.by)
    refuse_if(operation.refusal(owner, context.at))
    store_new(owner, new_credentials(keys, certificate), expires_at, context, allowed_networks)
    return owner


def new_credentials(keys: str, certificate: str | None) -> list[Credential]:
    """The keys, or the subject, not stored yet. Raises ServiceError, which never shows the text."""
    if certificate is None:
        return [
            Credential(lookup=key_name(key.kid), hint=hint_of(key.kid), public_jwk=key.jwk)
            for key in validate_keys(keys)
        ]
    try:
        subject = read_subject(certificate)
    except UnusableSubject as unusable:
        raise ServiceError(unusable.fault, "invalid_certificate", "certificate") from None
    hint = hint_of(subject.lookup)
    return [Credential(lookup=subject.lookup, hint=hint, certificate_name=subject.text)]


def validate_keys(text: str) -> Sequence[ClientKey]:
    """The keys in the text. Raises ServiceError, which never shows any of it."""
    try:
        keys = read_client_keys(text)
    except UnusableKey as unusable:
        raise ServiceError(unusable.fault, "invalid_key", "keys") from None
    if len(keys) > MAX_LIVE_CREDENTIALS:
        raise ServiceError(
            "Give two keys at most: the present one, and the next one.", "too_many", "keys"
        )
    return keys


def why_not_taken() -> str:
    """Why no client can present a certificate; empty if they can."""
    if settings.MTLS_URL:
        return ""
    return _(
        "This service takes no client certificates yet, so no client could log in with one."
        " Its operators must set MTLS_URL first."
    )
