"""What an access token is bound to: its claim `cnf` (RFC 9449 6.1, RFC 8705 3.1). Pure."""

from typing import Any

from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding

_MEMBERS = {TokenBinding.DPOP: "jkt", TokenBinding.TLS: "x5t#S256"}


def confirmation_claim(confirmation: Confirmation) -> dict[str, str]:
    """The value of `cnf`. Raises KeyError if nothing was proved."""
    return {_MEMBERS[TokenBinding(confirmation.binding)]: confirmation.thumbprint}


def token_type(confirmation: Confirmation) -> str:
    """How such a token is sent (RFC 6749 section 7.1): one bound to a certificate is a Bearer."""
    return "DPoP" if confirmation.binding == TokenBinding.DPOP else "Bearer"


def read_confirmation(claim: Any) -> Confirmation:
    """What the claim says; a token without it is bound to nothing.

    Raises ValueError for a claim that this service does not write, so that it is never ignored.
    """
    if claim is None:
        return UNBOUND
    for binding, member in _MEMBERS.items():
        if isinstance(claim, dict) and claim.keys() == {member} and claim[member]:
            return Confirmation(binding, str(claim[member]))
    raise ValueError("a confirmation that is not known")
