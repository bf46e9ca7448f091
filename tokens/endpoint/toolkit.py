"""The toolkit's server and backend, with the client credentials grant and no other (RFC 6749 4.4).

`LoginBackend` stands between Django and oauthlib: what arrives here was parsed already, so the
form is handed on as it is, not encoded and decoded again.
"""

from typing import Any

from oauth2_provider.oauth2_backends import OAuthLibCore
from oauthlib.common import Request
from oauthlib.oauth2 import BearerToken, ClientCredentialsGrant, RequestValidator, TokenEndpoint

from taxpayers.rules import ClientFacts
from tokens.access_tokens.claims import TOKEN_LIFETIME
from tokens.access_tokens.issuing import issue_access_token
from tokens.endpoint.login import Login
from tokens.endpoint.request import GRANT_TYPE


class LoginRequest(Request):
    """oauthlib's request, carrying the `Login`.

    Only parameters that were checked are passed to oauthlib: its request answers an unknown
    attribute with the form field of that name, and a client must not be able to set one of ours.
    """

    login: Login
    client: ClientFacts  # oauthlib wants a `client_id` of it
    scopes: list[str] | None

    def __init__(self, login: Login) -> None:
        attempt = login.attempt
        form = [
            ("grant_type", attempt.grant_type),
            ("client_id", attempt.client_id),
            ("scope", " ".join(attempt.scopes or ())),
        ]
        super().__init__("", http_method="POST", body=form)
        self.login = login


class ClientCredentialsServer(TokenEndpoint):
    """A token endpoint that knows one grant; every other is closed by its absence."""

    def __init__(self, request_validator: RequestValidator, **_settings: Any) -> None:
        bearer = BearerToken(
            request_validator,
            token_generator=_issue,
            expires_in=int(TOKEN_LIFETIME.total_seconds()),
        )
        super().__init__(
            default_grant_type=GRANT_TYPE,
            default_token_type=bearer,
            grant_types={GRANT_TYPE: ClientCredentialsGrant(request_validator)},
        )

    def create_login_response(self, login: Login) -> tuple[dict[str, str], str, int]:
        """Headers, body and status of RFC 6749 5.1. Raises Refused with the first "no"."""
        answer: tuple[dict[str, str], str, int]
        answer = self.default_grant_type_handler.create_token_response(
            LoginRequest(login), self.default_token_type
        )
        return answer


class LoginBackend(OAuthLibCore):
    """The toolkit's backend for a login that was read from its Django request already."""

    server: ClientCredentialsServer

    def create_token_response(self, login: Login) -> tuple[str | None, dict[str, str], str, int]:
        """As the toolkit's, with a `Login` for the request: URI (none), headers, body, status."""
        return None, *self.server.create_login_response(login)


def _issue(request: LoginRequest, refresh_token: bool = False) -> str:
    token, request.login.kid = issue_access_token(request.login.authorization, jti=request.login.id)
    return token
