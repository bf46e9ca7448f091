"""Checks and reasons as they read for a secret, a key or a certificate. Pure.

The texts of the table are for all three: those of a list, a count or a public page.
"""

from collections.abc import Mapping

from taxpayers.facts.credential_kind import CredentialKind
from taxpayers.facts.values import ASSERTION, CERTIFICATE
from taxpayers.rules import RegistryReason
from tokens.refusals.table import REFUSALS, Check, ProtocolReason


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


_PARAMETERS = {ASSERTION: CredentialKind.KEY, CERTIFICATE: CredentialKind.CERTIFICATE}
_QUESTIONS: Mapping[CredentialKind, Mapping[Check, str]] = {
    CredentialKind.SECRET: {},  # those of the table
    CredentialKind.KEY: {
        Check.CREDENTIALS_FORM: _("Do the client ID and the assertion have the right form?"),
        Check.CREDENTIALS: _("Are the client ID, the key and its signature correct?"),
        Check.SECRET_EXPIRY: _("Is the key not expired?"),
        Check.SECRET_REVOCATION: _("Is the key not revoked?"),
        Check.SOURCE_NETWORK: _("Did it come from a network from where the key may be used?"),
    },
    CredentialKind.CERTIFICATE: {
        Check.CREDENTIALS_FORM: _("Do the client ID and the certificate have the right form?"),
        Check.CREDENTIALS: _("Are the client ID and the certificate correct?"),
        Check.SECRET_EXPIRY: _("Is the registration of the certificate not expired?"),
        Check.SECRET_REVOCATION: _("Is the registration of the certificate not revoked?"),
        Check.SOURCE_NETWORK: _(
            "Did it come from a network from where the certificate may be used?"
        ),
    },
}
_STAFF_TEXTS: Mapping[CredentialKind, Mapping[str, str]] = {
    CredentialKind.SECRET: {
        ProtocolReason.INVALID_CREDENTIALS: _("Wrong client ID or secret"),
        RegistryReason.SECRET_EXPIRED: _("Secret expired"),
        RegistryReason.SECRET_REVOKED: _("Secret revoked"),
    },
    CredentialKind.KEY: {
        ProtocolReason.INVALID_CREDENTIALS: _("Wrong client ID or key"),
        RegistryReason.SECRET_EXPIRED: _("Key expired"),
        RegistryReason.SECRET_REVOKED: _("Key revoked"),
    },
    CredentialKind.CERTIFICATE: {
        ProtocolReason.INVALID_CREDENTIALS: _("Wrong client ID or certificate"),
        RegistryReason.SECRET_EXPIRED: _("Certificate expired"),
        RegistryReason.SECRET_REVOKED: _("Certificate revoked"),
    },
}


def kind_named_by(parameter: str) -> CredentialKind:
    """What a client tried to log in with, from the parameter that its refusal names."""
    return _PARAMETERS.get(parameter, CredentialKind.SECRET)


def question_of(check: Check, kind: CredentialKind) -> str:
    """What is checked of a login with this kind, in English."""
    return _QUESTIONS[kind].get(check, check.value)


def staff_text_of_kind(reason: str, kind: CredentialKind) -> str:
    """What was wrong with a login with this kind, in English; `reason` is in the table."""
    return _STAFF_TEXTS[kind].get(reason, REFUSALS[reason].staff_text)
