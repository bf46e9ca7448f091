"""An `Authorization`, and nothing else, becomes an access token (contract 2, RFC 9068)."""

from datetime import timedelta

from taxpayers.rules import Authorization
from taxpayers.value import Hidden, Value
from tokens.access_tokens.claims import access_token_claims
from tokens.keys.signer import current_key_ring, sign
from tokens.lifetime import TOKEN_LIFETIME
from tokens.login_settings import login_settings


class SignedToken(Value):
    """An access token, the decision that it carries, and the id of the key that signed it."""

    authorization: Authorization
    kid: str
    encoded: Hidden[str]


def issue_access_token(
    authorization: Authorization | None,
    *,
    jti: str,
    status_index: int,
    lifetime: timedelta = TOKEN_LIFETIME,
) -> SignedToken:
    """The signed token. Raises TypeError without an `Authorization`: no decision, no token."""
    if not isinstance(authorization, Authorization):
        raise TypeError("An access token is issued for an Authorization only.")
    own = login_settings()
    key = current_key_ring(authorization.at).signer(authorization.at)
    claims = access_token_claims(
        authorization,
        issuer=own.issuer,
        jti=jti,
        status_index=status_index,
        audiences=own.audiences,
        lifetime=lifetime,
    )
    return SignedToken(authorization, key.kid, sign(claims, key))
