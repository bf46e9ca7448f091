"""What a system user logs in with: a secret, a private key or a certificate (contract 3). Pure."""

from enum import StrEnum


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


_PLURALS = {
    CredentialKind.SECRET: _("secrets"),
    CredentialKind.KEY: _("keys"),
    CredentialKind.CERTIFICATE: _("certificates"),
}
