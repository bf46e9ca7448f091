"""Does the sender of a token possess what it is bound to? What cannot be checked is refused."""

import hmac
from collections.abc import Iterator
from contextlib import contextmanager

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.certificates import thumbprint_of
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
_SEND_CERTIFICATE = (
    "The token is bound to a TLS certificate of its client, which did not come with this request."
    " Connect with it."
)
_NOT_BOUND = "The token is not bound to a key. Send it with Authorization: Bearer."


class BindingCheck:
    """`address` is the one that clients call; None: no token that is bound to a key is accepted.

    `takes_certificates`: clients can connect with one.
    """

    def __init__(
        self,
        address: str | None,
        used_proofs: UsedProofs | None,
        *,
        takes_certificates: bool = False,
    ) -> None:
        self._address, self._takes_certificates = address, takes_certificates
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
        thumbprint = _thumbprint(token, "jkt")
        if certificate := _thumbprint(token, "x5t#S256"):
            self._check_certificate(certificate, request)
            thumbprint = None  # it is sent like a token that is bound to nothing
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

    def _check_certificate(self, thumbprint: str, request: ProvedRequest | None) -> None:
        certificate = request.certificate if request else None
        if certificate is None and not self._takes_certificates:
            raise InvalidToken(_CANNOT_CHECK)
        if certificate is None or not hmac.compare_digest(
            thumbprint_of(certificate).encode(), thumbprint.encode()
        ):
            raise InvalidToken(_SEND_CERTIFICATE)

    @contextmanager
    def words_of(self, *, is_bound: bool) -> Iterator[None]:
        """The answer to a token that was sent as a bound one (RFC 9449 section 7.1)."""
        try:
            yield
        except InvalidToken as error:
            if is_bound and self._address is not None:
                _in_words_of_dpop(error)
            raise


def _thumbprint(token: AccessToken, member: str) -> str | None:
    """Of a key or a certificate; None: it is bound to nothing; empty: to something else."""
    if not token.is_bound:
        return None
    confirmation = token.claims["cnf"]
    if isinstance(confirmation, dict) and confirmation.keys() == {member}:
        return str(confirmation[member])
    return ""


def _in_words_of_dpop(error: InvalidToken) -> InvalidToken:
    error.scheme = "DPoP"
    return error
