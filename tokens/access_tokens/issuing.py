"""An `Authorization`, and nothing else, becomes an access token (contract 2, RFC 9068)."""

from uuid import UUID

from django.conf import settings

from taxpayers.rules import Authorization
from tokens.access_tokens.claims import access_token_claims
from tokens.keys.signer import current_key_ring, sign


def issue_access_token(authorization: Authorization | None, *, jti: UUID) -> tuple[str, str]:
    """The signed token for this authorization, and the `kid` of the key that signed it.

    Raises TypeError for anything but an `Authorization`: no decision, no token.
    """
    if not isinstance(authorization, Authorization):
        raise TypeError("An access token is issued for an Authorization only.")
    key = current_key_ring(authorization.at).signer(authorization.at)
    claims = access_token_claims(
        authorization,
        issuer=settings.AUTH_URL,
        jti=str(jti),
        audiences={name: scope["audience"] for name, scope in settings.SCOPES.items()},
    )
    return sign(claims, key), key.kid
