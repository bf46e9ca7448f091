"""Who calls a protected API: the bearer of an access token (RFC 6750 section 2.1)."""

import re
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from tokens.access_tokens.verification import AccessToken, InvalidToken, verify
from tokens.keys.signer import current_key_ring

_BEARER = re.compile(r"bearer +([A-Za-z0-9._-]+) *", re.ASCII | re.IGNORECASE)
_MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."
_MALFORMED = "The header Authorization must be Bearer and one token. Send it once."


class AccessTokenAuthentication(BaseAuthentication):
    """A verified `AccessToken` as `request.auth`; its caller as `request.user`.

    Anything else is a 401 that says why. A token in the body or in the query string is ignored
    (RFC 9700 section 4.3.2: it would end up in logs).
    """

    def authenticate(self, request: Request) -> tuple[Any, AccessToken]:
        """Raises AuthenticationFailed, or django.db.DatabaseError if no key can be read."""
        try:
            encoded = _bearer_token(request.META.get("HTTP_AUTHORIZATION", ""))
            access_token = _verified(encoded)
            return self.caller_of(encoded, access_token), access_token
        except InvalidToken as fault:
            raise AuthenticationFailed(str(fault)) from None

    def caller_of(self, encoded: str, token: AccessToken) -> Any:
        """What becomes `request.user`: the token itself, as there is no other user.

        May raise InvalidToken.
        """
        return token

    def authenticate_header(self, request: Request) -> str:
        """The challenge of every 401 (RFC 6750 section 3)."""
        return 'Bearer error="invalid_token"'


def _verified(encoded: str) -> AccessToken:
    """The content of a token by its signature and time. Raises InvalidToken."""
    at = datetime.now(UTC)
    return verify(
        encoded,
        current_key_ring(at),
        issuer=settings.AUTH_URL,
        audiences={scope["audience"] for scope in settings.SCOPES.values()},
        at=at,
    )


def _bearer_token(header: str) -> str:
    if header[:6].lower() != "bearer":
        raise InvalidToken(_MISSING)
    match = _BEARER.fullmatch(header)
    if match is None:
        raise InvalidToken(_MALFORMED)
    return match[1]
