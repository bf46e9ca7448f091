"""Who calls with its own key, which no client has yet, and no token: a DPoP proof (RFC 9449 4)."""

from dataclasses import dataclass
from datetime import UTC, datetime

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.services.login_method.keys import validate_keys
from taxpayers.validation import ServiceError
from tokens.answers.description import describe_proof_fault
from tokens.dpop.proof import InvalidProof, Proof, ProofFault, verified_thumbprint
from tokens.request.arrival import called_url, reported_certificate
from tokens.resource_server.active_token import DpopChallenge
from tokens.resource_server.possession import proof_of, use_once

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
        """Raises DpopChallenge if the proof was used before."""
        try:
            use_once(self.proof, _USE, self.thumbprint)
        except InvalidProof as invalid:
            raise _challenge(invalid.fault) from None


class KeyAuthentication(BaseAuthentication):
    """A `ProvedKey` as `request.auth`; there is no user. The proof is not used up yet."""

    def authenticate(self, request: Request) -> tuple[None, ProvedKey]:
        """Raises DpopChallenge, or ParseError for a key with which no client could log in."""
        if "HTTP_DPOP" not in request.META:
            raise DpopChallenge("invalid_dpop_proof", _MISSING)
        called = called_url(reported_certificate(request.META))
        try:
            proof = proof_of(request, datetime.now(UTC), called)
            jwk = proof.jwk.decode(errors="replace")
            validate_keys(jwk)
            return None, ProvedKey(jwk, verified_thumbprint(proof), proof)
        except ServiceError as fault:
            raise ParseError(str(fault)) from None
        except InvalidProof as invalid:
            raise _challenge(invalid.fault) from None


def _challenge(fault: ProofFault) -> DpopChallenge:
    return DpopChallenge("invalid_dpop_proof", describe_proof_fault(fault))
