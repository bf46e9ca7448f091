"""What client authentication ends with: a client that proved who it is (RFC 6749 section 2.3).

Each method is a module of this folder, and only such a module makes an `AuthenticatedClient`.
"""

from enum import StrEnum

from taxpayers.facts.token_binding import UNBOUND, Confirmation
from taxpayers.facts.values import ClientFacts, CredentialFacts, Facts
from taxpayers.value import Value
from tokens.calls import ProofUse


class Method(StrEnum):
    """How a client proves who it is; names of the IANA registry for token endpoints."""

    CLIENT_SECRET_POST = "client_secret_post"
    CLIENT_SECRET_BASIC = "client_secret_basic"
    PRIVATE_KEY_JWT = "private_key_jwt"
    TLS_CLIENT_AUTH = "tls_client_auth"


SECRET_METHODS = (Method.CLIENT_SECRET_POST, Method.CLIENT_SECRET_BASIC)


class AuthenticatedClient(Value):
    """Who asks, how it proved that, and what the registry knows about its request.

    Its reason is told only to such a client, whatever the decision is.
    """

    method: Method
    facts: Facts
    confirmation: Confirmation = UNBOUND  # what it has proved to possess besides, for its token
    proof: ProofUse | None = None  # which proved it, to be stored with the login

    @property
    def client_id(self) -> str:
        return self.facts.client.client_id

    @property
    def client(self) -> ClientFacts:
        return self.facts.client

    @property
    def credential(self) -> CredentialFacts:
        """The secret that matched, the key that signed, or the name of the certificate."""
        return self.facts.credential
