"""Who calls an API of this service: the bearer of a token that is active by the registry."""

from tokens.access_tokens.verification import AccessToken
from tokens.resource_server.authentication import AccessTokenAuthentication
from tokens.resource_server.present_status import ActiveToken, require_active


class ActiveTokenAuthentication(AccessTokenAuthentication):
    """Also asks the registry: a token of a blocked client is refused at once.

    `request.user` is an `ActiveToken`.
    """

    def caller_of(self, encoded: str, token: AccessToken) -> ActiveToken:
        """Raises InvalidToken, or django.db.DatabaseError if the registry cannot be read."""
        return require_active(encoded, token)
