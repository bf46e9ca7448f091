"""An `Authorization`, and nothing else, becomes an access token (contract 2, RFC 9068)."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from taxpayers.rules import Authorization
from tokens.access_tokens.claims import access_token_claims
from tokens.keys.signer import current_key_ring, sign
from tokens.lifetime import TOKEN_LIFETIME


@dataclass(frozen=True, slots=True)
class SignedToken:
    """An access token, the decision that it carries, and the id of the key that signed it."""

    authorization: Authorization
    kid: str
    encoded: str = field(repr=False)


def issue_access_token(
    authorization: Authorization | None,
    *,
    jti: UUID,
    status_index: int,
    lifetime: timedelta = TOKEN_LIFETIME,
) -> SignedToken:
    """The signed token for this authorization.

    Raises TypeError for anything but an `Authorization`: no decision, no token.
    """
    if not isinstance(authorization, Authorization):
        raise TypeError("An access token is issued for an Authorization only.")
    key = current_key_ring(authorization.at).signer(authorization.at)
    claims = access_token_claims(
        authorization,
        issuer=settings.AUTH_URL,
        jti=str(jti),
        status_index=status_index,
        audiences={name: scope["audience"] for name, scope in settings.SCOPES.items()},
        lifetime=lifetime,
    )
    return SignedToken(authorization, key.kid, sign(claims, key))
