"""Does the caller possess what its token is bound to? (RFC 9449 section 7, RFC 8705 section 3)."""

import hmac
from collections.abc import Generator
from datetime import datetime

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.access_tokens.verification import AccessToken, InvalidToken
from tokens.calls import ProofUse
from tokens.client_auth.certificate import CertificateHeaders, read_certificate
from tokens.dpop.proof import (
    InvalidProof,
    Proof,
    ProofFault,
    hash_of_token,
    read_proof,
    verified_thumbprint,
)

BEARER, DPOP = "bearer", "dpop"  # how a token is sent, in lower case
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


class ApiRequest(Value):
    """A request to one of our own addresses, as far as its token or its key is checked."""

    method: str
    address: str  # the whole one, without its query: a DPoP proof is for it
    authorization: Hidden[str] = ""
    dpop: Hidden[str | None] = None
    certificate: CertificateHeaders | None = None


def check_possession(
    sent: ApiRequest, scheme: str, encoded: str, token: AccessToken, at: datetime
) -> Proof | None:
    """The proof of the request; None: it needs none. Raises InvalidToken, or InvalidProof."""
    binding = token.confirmation.binding
    if scheme == DPOP:
        if binding != TokenBinding.DPOP:
            raise InvalidToken(_NOT_BOUND)
        return _proof(sent, encoded, token, at)
    if binding == TokenBinding.DPOP:
        raise MustBeBound(_BOUND_TO_KEY)
    if binding != TokenBinding.BEARER and not _has_certificate(sent.certificate, token, at):
        raise InvalidToken(_BOUND_TO_CERTIFICATE)
    return None


def _has_certificate(sent: CertificateHeaders | None, token: AccessToken, at: datetime) -> bool:
    """Whether the request came with the very certificate that the token is bound to."""
    if sent is None or token.confirmation.binding != TokenBinding.TLS:
        return False
    try:
        certificate = read_certificate(sent)
        certificate.check_time(at)
    except Refused:
        return False
    return hmac.compare_digest(certificate.thumbprint, token.confirmation.thumbprint)


def use_once(proof: Proof, client_id: str, thumbprint: str) -> Generator[ProofUse, bool, None]:
    """The step that stores the use of a proof. Raises InvalidProof if it was used before."""
    if not (yield ProofUse(proof.use_id(client_id, thumbprint), proof.last_moment)):
        raise InvalidProof(ProofFault.USED_BEFORE)


def proof_of(sent: ApiRequest, at: datetime) -> Proof:
    """The proof of the request, whose signature is not checked yet. Raises InvalidProof."""
    return read_proof(sent.dpop or "", method=sent.method, address=sent.address, at=at)


def _proof(sent: ApiRequest, encoded: str, token: AccessToken, at: datetime) -> Proof:
    proof = proof_of(sent, at)
    if not hmac.compare_digest(proof.ath.encode(), hash_of_token(encoded).encode()):
        raise InvalidProof(ProofFault.TOKEN)
    if verified_thumbprint(proof) != token.confirmation.thumbprint:
        raise InvalidProof(ProofFault.OTHER_KEY)
    return proof
