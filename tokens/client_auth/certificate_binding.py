"""What a client's certificate makes of its token: one that is bound to it (RFC 8705 section 3).

For every client that logs in with a certificate, and for those whose tokens must be bound to one,
whatever they log in with; a certificate that comes with another login means nothing.
"""

from dataclasses import replace
from datetime import datetime

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.rules import check_credential
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.client_auth.certificate import CertificateHeaders, read_certificate


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
