"""What a system user logs in with: a secret, a private key or a certificate (contract 3). Pure."""

from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


class CredentialKind(StrEnum):
    """The name in the history is the English word, and what the catalogues translate."""

    SECRET = _("secret")
    KEY = _("key")
    CERTIFICATE = _("certificate")

    @property
    def plural(self) -> str:
        """In English, for the catalogues."""
        return _PLURALS[self]


def by_kind(secret: T, key: T, certificate: T) -> dict[str | None, T]:
    """What is different for each kind, such as a text."""
    return dict(zip(CredentialKind, (secret, key, certificate), strict=True))


_PLURALS = by_kind(_("secrets"), _("keys"), _("certificates"))
