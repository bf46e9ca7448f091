"""Why a request is refused, and the answer to give (RFC 6750 section 3)."""

from typing import ClassVar

RETRY_SECONDS = 5
ALGORITHMS_OF_PROOFS = ("ES256", "PS256", "EdDSA")


class TokenError(Exception):
    """A request that must not go on. `description` says who does what next, to anyone.

    `status`, `headers` and `body` are the whole answer; the body is to be sent as JSON.
    """

    status: ClassVar[int]
    error: ClassVar[str]
    scheme: str = "Bearer"  # how the token is sent; DPoP: it must be bound to a key, or is

    @property
    def description(self) -> str:
        """The text, in the characters that RFC 6750 section 3 allows."""
        return str(self)

    @property
    def body(self) -> dict[str, str]:
        """The same shape as every error of the identity service."""
        return {"error": self.error, "error_description": self.description}

    @property
    def headers(self) -> dict[str, str]:
        """The challenge of a 401 or 403; how long to wait after a 503."""
        return {"WWW-Authenticate": self.challenge(), "Cache-Control": "no-store"}

    def challenge(self, more: str = "") -> str:
        """The value of `WWW-Authenticate`; `more` are further parameters."""
        if self.scheme == "DPoP":
            more += f', algs="{" ".join(ALGORITHMS_OF_PROOFS)}"'
        return f'{self.scheme} error="{self.error}"{more}'


class InvalidToken(TokenError):
    """401: the token is missing, malformed, expired, ended, foreign or meant for another API."""

    status = 401
    error = "invalid_token"


class InvalidProof(TokenError):
    """401: the token is bound to a key, and the request does not prove that its sender has it."""

    status = 401
    error = "invalid_dpop_proof"
    scheme = "DPoP"


class InsufficientScope(TokenError):
    """403: the token is valid, and does not allow this. `scope`: the one that it lacks."""

    status = 403
    error = "insufficient_scope"

    def __init__(self, description: str, scope: str = "") -> None:
        super().__init__(description)
        self.scope = scope

    @property
    def headers(self) -> dict[str, str]:
        missing = f', scope="{self.scope}"' if self.scope else ""
        return {"WWW-Authenticate": self.challenge(missing), "Cache-Control": "no-store"}


class Unavailable(TokenError):
    """503: whether the token is valid cannot be checked now. No request is accepted on a guess.

    Its text is the fault, with addresses that are for the operator of this API only: for logs.
    """

    status = 503
    error = "temporarily_unavailable"

    @property
    def description(self) -> str:
        return (
            "This API cannot check tokens right now. Nothing is wrong with the request; try again."
        )

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}


def unavailable(fault: str) -> Unavailable:
    """A 503, because of this fault of the identity service or on the way to it."""
    return Unavailable(f"This API cannot check tokens right now: {fault}.")
