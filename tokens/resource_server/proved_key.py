"""Who calls with its own key, which no client has yet, and no token: a DPoP proof (RFC 9449 4)."""

from dataclasses import dataclass
from datetime import UTC, datetime

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.services.login_method.keys import validate_keys
from taxpayers.validation import ServiceError
from tokens.dpop.proof import InvalidProof, Proof, verified_thumbprint
from tokens.request.arrival import called_url, reported_certificate
from tokens.resource_server.active_token import dpop_challenge, invalid_proof
from tokens.resource_server.authentication import Challenge, api_request
from tokens.resource_server.possession import proof_of, use_once
from tokens.store.django_store import perform_all

_USE = "a key without a client"  # no client_id is like it
_MISSING = (
    "Send the header DPoP: a proof (RFC 9449 section 4) that is signed with the private key, with"
    " the public key in its header."
)


@dataclass(frozen=True, slots=True)
class ProvedKey:
    """A key whose owner sent this very request; `jwk` as sent, in JSON."""

    jwk: str
    thumbprint: str
    proof: Proof

    def use_once(self) -> None:
        """Raises Challenge if the proof was used before."""
        try:
            perform_all(use_once(self.proof, _USE, self.thumbprint))
        except InvalidProof as invalid:
            raise Challenge(invalid_proof(invalid.fault)) from None


class KeyAuthentication(BaseAuthentication):
    """A `ProvedKey` as `request.auth`; there is no user. The proof is not used up yet."""

    def authenticate(self, request: Request) -> tuple[None, ProvedKey]:
        """Raises Challenge, or ParseError for a key with which no client could log in."""
        sent = api_request(request, called_url(reported_certificate(request.META)))
        if sent.dpop is None:
            raise Challenge(dpop_challenge(_MISSING))
        try:
            proof = proof_of(sent, datetime.now(UTC))
            jwk = proof.jwk.decode(errors="replace")
            validate_keys(jwk)
            return None, ProvedKey(jwk, verified_thumbprint(proof), proof)
        except ServiceError as fault:
            raise ParseError(str(fault)) from None
        except InvalidProof as invalid:
            raise Challenge(invalid_proof(invalid.fault)) from None
