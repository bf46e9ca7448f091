"""What a client proves with the header DPoP when it logs in (RFC 9449 section 5).

Only for system users whose tokens must be bound to a key; whatever other clients send in this
header means nothing, and they get a Bearer token.
"""

import hashlib
from datetime import datetime
from functools import cache

from django.conf import settings
from msgspec.structs import replace

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.rules import Refused, check_credential
from tokens.calls import ProofUse
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.dpop.nonce import Nonces
from tokens.dpop.proof import HEADER, InvalidProof, ProofFault, read_proof, verified_thumbprint
from tokens.refusals.table import ProtocolReason

NONCE_HEADER = "DPoP-Nonce"
_PATH = "/connect/token"


def must_prove_key(client: AuthenticatedClient) -> bool:
    """Whether RFC 9449 applies to this client."""
    return client.client.token_binding == TokenBinding.DPOP


def with_proof(
    client: AuthenticatedClient,
    sent: str | None,
    at: datetime,
    *,
    called: str,
    was_used: bool,
) -> AuthenticatedClient:
    """The client with the key that it has proved to possess; `sent` is the header, None: absent.

    `called` is the base address of the request; `was_used`: this very proof was stored before.
    Raises Refused.
    """
    if not must_prove_key(client) or sent is None:
        return client  # that a proof is missing is for the decision to say
    check_credential(client.credential, at)
    try:
        proof = read_proof(sent, method="POST", address=f"{called}{_PATH}", at=at)
        if not nonces().is_accepted(proof.nonce, at):
            raise Refused(ProtocolReason.USE_DPOP_NONCE, parameter=HEADER)
        thumbprint = verified_thumbprint(proof)
        if was_used:
            raise InvalidProof(ProofFault.USED_BEFORE)
    except InvalidProof as invalid:
        raise Refused(
            ProtocolReason.INVALID_DPOP_PROOF, parameter=HEADER, detail=invalid.fault
        ) from None
    return replace(
        client,
        confirmation=Confirmation(TokenBinding.DPOP, thumbprint),
        proof=ProofUse(proof.use_id(client.client_id, thumbprint), proof.last_moment),
    )


@cache
def nonces() -> Nonces:
    """Those of this service: all of its processes have the same key."""
    return Nonces(hashlib.sha256(f"DPoP nonces {settings.SECRET_KEY}".encode()).digest())
