"""Actions and fields of the history as they read for a secret, a key or a certificate (contract 3).

A change names the kind since the history stores it; an older one gets a text that is true for each.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy

from taxpayers import actions
from taxpayers.facts.credential_kind import CredentialKind
from taxpayers.models import Change

ACTIONS: Mapping[str, Mapping[CredentialKind | None, Any]] = {
    actions.CHANGE_SECRET.name: {
        CredentialKind.SECRET: gettext_lazy("Changed from where a secret may be used"),
        CredentialKind.KEY: gettext_lazy("Changed from where a key may be used"),
        CredentialKind.CERTIFICATE: gettext_lazy("Changed from where a certificate may be used"),
    },
    actions.RETIRE_SECRET.name: {
        CredentialKind.SECRET: gettext_lazy("Set the last day of a secret"),
        CredentialKind.KEY: gettext_lazy("Set the last day of a key"),
        CredentialKind.CERTIFICATE: gettext_lazy("Set the last day of a certificate"),
    },
    actions.REVOKE_SECRET.name: {
        CredentialKind.SECRET: gettext_lazy("Revoked a secret"),
        CredentialKind.KEY: gettext_lazy("Revoked a key"),
        CredentialKind.CERTIFICATE: gettext_lazy("Revoked a certificate"),
    },
}
FIELDS: Mapping[str, Mapping[CredentialKind | None, Any]] = {
    "secret": {
        CredentialKind.SECRET: gettext_lazy("Secret"),
        CredentialKind.KEY: gettext_lazy("Key"),
        CredentialKind.CERTIFICATE: gettext_lazy("Certificate"),
    },
    "secret_expires_at": {
        CredentialKind.SECRET: gettext_lazy("Secret expires"),
        CredentialKind.KEY: gettext_lazy("Key expires"),
        CredentialKind.CERTIFICATE: gettext_lazy("Certificate expires"),
    },
    "secret_revoked_at": {
        CredentialKind.SECRET: gettext_lazy("Secret revoked"),
        CredentialKind.KEY: gettext_lazy("Key revoked"),
        CredentialKind.CERTIFICATE: gettext_lazy("Certificate revoked"),
    },
}


def kind_in(change: Change) -> CredentialKind | None:
    """Of what it is a change; None if it does not say."""
    try:
        return CredentialKind(change.after.get("credential", ""))
    except ValueError:
        return None
