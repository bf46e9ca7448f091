"""Does the caller possess what its token is bound to? (RFC 9449 section 7, RFC 8705 section 3)."""

import hmac
import itertools
from datetime import datetime

from django.utils.encoding import escape_uri_path
from rest_framework.request import Request

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.rules import Refused
from tokens.access_tokens.verification import AccessToken, InvalidToken
from tokens.calls import ProofUse
from tokens.client_auth.certificate import read_certificate
from tokens.dpop.proof import (
    InvalidProof,
    Proof,
    ProofFault,
    hash_of_token,
    read_proof,
    verified_thumbprint,
)
from tokens.request.arrival import reported_certificate
from tokens.store import django_store as store
from tokens.store.used_once import prune_some_proofs

BEARER, DPOP = "bearer", "dpop"  # how a token is sent, in lower case
# No limit holds for requests with a token, and anyone gets one for a client of the sandbox: so the
# rows of expired proofs do not wait for the nightly job, which is to find no more than a few.
PRUNE_EVERY = 100
_uses = itertools.count(1)
_BOUND_TO_KEY = (
    "The token is bound to a key of its client. Send it with Authorization: DPoP, and a proof in"
    " the header DPoP."
)
_BOUND_TO_CERTIFICATE = (
    "The token is bound to a TLS certificate of its client, which did not come with this request."
    " Connect with it, to an address of mtls_endpoint_aliases in the metadata of this service."
)
_NOT_BOUND = "The token is not bound to a key. Send it with Authorization: Bearer."


class MustBeBound(InvalidToken):
    """A token that is bound to a key was sent as if it were bound to nothing."""


def check_possession(
    request: Request, scheme: str, encoded: str, token: AccessToken, at: datetime, called: str
) -> Proof | None:
    """The proof of the request, if the token is bound to a key; None: it needs none.

    `called` is the base address at which the API is called. Raises InvalidToken if the token is
    sent in another way than it must be, or InvalidProof.
    """
    binding = token.confirmation.binding
    if scheme == DPOP:
        if binding != TokenBinding.DPOP:
            raise InvalidToken(_NOT_BOUND)
        return _proof(request, encoded, token, at, called)
    if binding == TokenBinding.DPOP:
        raise MustBeBound(_BOUND_TO_KEY)
    if binding != TokenBinding.BEARER and not _has_certificate(request, token, at):
        raise InvalidToken(_BOUND_TO_CERTIFICATE)
    return None


def _has_certificate(request: Request, token: AccessToken, at: datetime) -> bool:
    """Whether the request came with the very certificate that the token is bound to."""
    sent = reported_certificate(request.META)
    if sent is None or token.confirmation.binding != TokenBinding.TLS:
        return False
    try:
        certificate = read_certificate(sent)
        certificate.check_time(at)
    except Refused:
        return False
    return hmac.compare_digest(certificate.thumbprint, token.confirmation.thumbprint)


def use_once(proof: Proof, client_id: str, thumbprint: str) -> None:
    """Stores the use of a proof, for all nodes. Raises InvalidProof if it was used before."""
    if next(_uses) % PRUNE_EVERY == 0:
        prune_some_proofs()
    if not store.perform(ProofUse(proof.use_id(client_id, thumbprint), proof.last_moment)):
        raise InvalidProof(ProofFault.USED_BEFORE)


def proof_of(request: Request, at: datetime, called: str) -> Proof:
    """The proof of the request, whose signature is not checked yet. Raises InvalidProof."""
    address = f"{called}{escape_uri_path(request.path)}"
    sent = request.META.get("HTTP_DPOP", "")
    return read_proof(sent, method=request.method or "", address=address, at=at)


def _proof(request: Request, encoded: str, token: AccessToken, at: datetime, called: str) -> Proof:
    proof = proof_of(request, at, called)
    if not hmac.compare_digest(proof.ath.encode(), hash_of_token(encoded).encode()):
        raise InvalidProof(ProofFault.TOKEN)
    if verified_thumbprint(proof) != token.confirmation.thumbprint:
        raise InvalidProof(ProofFault.OTHER_KEY)
    return proof
