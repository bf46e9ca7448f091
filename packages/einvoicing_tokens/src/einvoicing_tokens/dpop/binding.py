"""Does the sender of a token possess what it is bound to? What cannot be checked is refused."""

from collections.abc import Iterator
from contextlib import contextmanager

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.dpop.proof import ProvedRequest, verified_proof
from einvoicing_tokens.dpop.used_proofs import UsedProofs, UsedProofsOfProcess
from einvoicing_tokens.errors import InvalidProof, InvalidToken

_CANNOT_CHECK = (
    "The token is bound to a key or certificate of its client, and this API cannot check that. Use"
    " a client that gets tokens without binding."
)
_SEND_PROOF = (
    "The token is bound to a key of its client. Send it with Authorization: DPoP, and a proof in"
    " the header DPoP."
)
_NOT_BOUND = "The token is not bound to a key. Send it with Authorization: Bearer."


class BindingCheck:
    """`address` is the one that clients call; None: no bound token is accepted."""

    def __init__(self, address: str | None, used_proofs: UsedProofs | None) -> None:
        self._address = address
        self._used_proofs = used_proofs or UsedProofsOfProcess()

    def check(
        self,
        token: AccessToken,
        encoded: str,
        request: ProvedRequest | None,
        *,
        at: float,
        is_bound: bool,
    ) -> None:
        """Raises InvalidToken or InvalidProof; `is_bound`: it is sent as a bound token (DPoP)."""
        thumbprint = _thumbprint(token)
        if thumbprint is None:
            if is_bound:
                raise InvalidToken(_NOT_BOUND)
            return
        if not thumbprint or self._address is None or request is None:
            raise InvalidToken(_CANNOT_CHECK)
        if not is_bound:
            raise _in_words_of_dpop(InvalidToken(_SEND_PROOF))
        proof = verified_proof(
            request, address=self._address, token=encoded, thumbprint=thumbprint, at=at
        )
        if not self._used_proofs.is_first(proof.name, proof.expires_at, at):
            raise InvalidProof("This proof was used before. Make a new one for each request.")

    @contextmanager
    def words_of(self, *, is_bound: bool) -> Iterator[None]:
        """Whoever sends a token as a bound one is answered so (RFC 9449 section 7.1)."""
        try:
            yield
        except InvalidToken as error:
            if is_bound and self._address is not None:
                _in_words_of_dpop(error)
            raise


def _thumbprint(token: AccessToken) -> str | None:
    """That of the key; None: it is bound to nothing; empty: to something else."""
    if not token.is_bound:
        return None
    confirmation = token.claims["cnf"]
    if isinstance(confirmation, dict) and confirmation.keys() == {"jkt"}:
        return str(confirmation["jkt"])
    return ""


def _in_words_of_dpop(error: InvalidToken) -> InvalidToken:
    error.scheme = "DPoP"
    return error
