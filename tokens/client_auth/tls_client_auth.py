"""Client authentication with a certificate: `tls_client_auth` (RFC 8705 section 2.1). Pure.

The proxy has verified the certificate; the client is the one that its subject is registered for.
Who sends a certificate for a client that does not exist learns nothing.
"""

from datetime import datetime

from msgspec.structs import replace

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.facts.values import CERTIFICATE, Facts
from taxpayers.rules import Refused, check_credential
from taxpayers.value import Hidden, Value
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.client_auth.certificate import CertificateHeaders, ClientCertificate, read_certificate
from tokens.refusals.table import ProtocolReason


class SentCertificate(Value):
    """A client id, and the certificate of the connection as the proxy reports it."""

    client_id: str
    headers: Hidden[CertificateHeaders]

    @property
    def parameters(self) -> dict[str, str]:
        """Those that must be there (RFC 8705 section 2)."""
        return {"client_id": self.client_id}


class CertificateCredentials(Value):
    """The same, whose form is right."""

    client_id: str
    certificate: ClientCertificate
    method: Method = Method.TLS_CLIENT_AUTH

    @property
    def lookup(self) -> str:
        """The hash of the subject of the certificate, where a secret is looked up by its hash."""
        return self.certificate.lookup

    @property
    def denial_key(self) -> str:
        """Key for remembered denials: the hash of this certificate."""
        return f"x5t${self.certificate.thumbprint}"


def authenticate(
    sent: CertificateCredentials, facts: Facts | None, at: datetime
) -> AuthenticatedClient:
    """The client that its subject is registered for, by the facts of both. Raises Refused."""
    # The proxy looked, too; but a connection may be older than the end of its certificate.
    sent.certificate.check_time(at)
    if facts is None:
        raise Refused(ProtocolReason.INVALID_CREDENTIALS, parameter=CERTIFICATE)
    return AuthenticatedClient(sent.method, facts)


def with_certificate(
    client: AuthenticatedClient, sent: CertificateHeaders | None, at: datetime
) -> AuthenticatedClient:
    """The client with the certificate that its token is bound to; `sent`: None without one.

    Raises Refused if that certificate cannot be used. That one is missing is for the decision.
    """
    if sent is None or not _is_bound(client):
        return client
    check_credential(client.credential, at)
    certificate = read_certificate(sent)
    certificate.check_time(at)
    return replace(client, confirmation=Confirmation(TokenBinding.TLS, certificate.thumbprint))


def _is_bound(client: AuthenticatedClient) -> bool:
    binding = client.client.token_binding
    if binding == TokenBinding.BEARER:
        return client.method is Method.TLS_CLIENT_AUTH
    return binding == TokenBinding.TLS
