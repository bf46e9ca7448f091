"""Authenticate the client, decide, sign: django-oauth-toolkit and oauthlib, on one screen.

The toolkit's server asks its validator in oauthlib's order (RFC 6749 section 4.4); each answer is
one frozen stage, and no later stage can be reached without the one before it:
`TokenRequest` → `AuthenticatedClient` → `Authorization` → `SignedToken`.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.common import Request
from oauthlib.oauth2 import BearerToken, ClientCredentialsGrant, RequestValidator, TokenEndpoint

from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.values import Reading
from taxpayers.rules import Authorization, AuthorizationRequest, decide
from tokens.access_tokens.claims import token_type
from tokens.access_tokens.issuing import SignedToken, issue_access_token
from tokens.answers.response import json_text
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.client_auth.methods import authenticate
from tokens.client_auth.tls_client_auth import with_certificate
from tokens.dpop.possession import with_proof
from tokens.login_settings import login_settings
from tokens.operations.stages import IssuedLogin, Login, Start
from tokens.request.arrival import called_url
from tokens.request.token_request import GRANT_TYPE
from tokens.status_lists.assignment import TokenIndex, token_index
from tokens.status_lists.offline_blocks import with_offline_block


class LoginRequest(Request):
    """oauthlib's request, carrying the stages that this login has passed.

    Only parameters that were read are passed to oauthlib: its request answers an unknown attribute
    with the form field of that name, and a client must not be able to set one of ours. The scopes
    are not among them: the decision reads those in `asked`.
    """

    # All were checked when the request was read; oauthlib would look them up several times.
    grant_type = GRANT_TYPE
    scope = ""  # the decision reads those in `asked`
    uri_query = ""
    duplicate_params: Sequence[str] = ()

    def __init__(self, login: Login, start: Start, reading: Reading) -> None:
        # What oauthlib's constructor makes, made once: it takes longer than all its questions.
        vars(self).update(_BLANK)
        self.client_id = login.asked.client_id
        self.login = login
        self.start = start
        self.reading = reading
        self.client: AuthenticatedClient | None = None
        self.authorization: Authorization | None = None
        self.index: TokenIndex | None = None
        self.token: SignedToken | None = None
        self.scopes: list[str] | None = None


_BLANK = vars(Request("", "POST", [("grant_type", GRANT_TYPE)], encoding=None))


class LoginValidator(OAuth2Validator):
    """Answers oauthlib's questions, in its order. What is wrong is raised as Refused, never False.

    What the registry knows was read before: nothing is looked up here. One instance serves all
    requests: nothing about a login is stored here.
    """

    def authenticate_client(self, request: LoginRequest, *args: Any, **kwargs: Any) -> bool:
        """Who asks, and how does it prove that?"""
        asked, reading = request.login.asked, request.reading
        request.client = authenticate(asked.credentials, reading.facts, reading.at)
        request.client = with_proof(
            request.client,
            asked.dpop,
            reading.at,
            called=called_url(asked.certificate),
            was_used=request.start.is_proof_used,
        )
        request.client = with_certificate(request.client, asked.certificate, reading.at)
        return True

    def validate_grant_type(self, *args: Any, **kwargs: Any) -> bool:
        """May the client use this grant? There is one, and the server knows no other."""
        return True

    def get_default_scopes(self, *args: Any, **kwargs: Any) -> list[str]:
        """Which scopes, if none is asked for? That is part of the decision."""
        return []

    def validate_scopes(
        self,
        client_id: str,
        scopes: list[str],
        client: AuthenticatedClient,
        request: LoginRequest,
        **kwargs: Any,
    ) -> bool:
        """The last question, and so the decision: may it have a token, for which taxpayer?"""
        request.authorization = decide(
            AuthorizationRequest(
                with_offline_block(client.facts),
                asked_scopes=request.login.asked.scopes,
                known_scopes=login_settings().scopes,
                at=request.reading.at,
                confirmation=client.confirmation,
                source=LoginSource(request.login.arrival.source_address),
            )
        )
        # These stand in the answer; without any there is no `scope` (specification 2.1).
        granted = request.authorization
        request.scopes = list(granted.scopes) if granted.scopes_differ else None
        return True


def _sign(request: LoginRequest) -> str:
    if request.client is None or request.authorization is None:
        raise TypeError("An access token is issued for an authorization only.")
    request.index = token_index(request.client.facts, request.authorization, request.start.reserved)
    request.token = issue_access_token(
        request.authorization,
        jti=request.login.arrival.reference,
        status_index=request.index.status.index,
        lifetime=request.login.terms.lifetime,
    )
    return request.token.encoded


class AccessTokenResponse(BearerToken):
    """oauthlib's answer, which names the type that the token has."""

    def create_token(
        self, request: LoginRequest, refresh_token: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        """RFC 6749 section 5.1; `DPoP` for one that is bound to a key (RFC 9449 section 5)."""
        token: dict[str, Any] = {
            "access_token": _sign(request),
            "expires_in": int(request.login.terms.lifetime.total_seconds()),
        }
        if request.authorization is not None:
            token["token_type"] = token_type(request.authorization.confirmation)
        if request.scopes is not None:
            token["scope"] = " ".join(request.scopes)
        return token


class ClientCredentialsServer(TokenEndpoint):
    """A token endpoint that knows one grant; every other is closed by its absence."""

    def __init__(self, request_validator: RequestValidator, **_settings: Any) -> None:
        access_token = AccessTokenResponse(request_validator)
        super().__init__(
            default_grant_type=GRANT_TYPE,
            default_token_type=access_token,
            grant_types={GRANT_TYPE: ClientCredentialsGrant(request_validator)},
        )


class LoginBackend(OAuthLibCore):
    """The toolkit's backend, for a request that was read already: nothing is encoded again."""

    def create_token_response(self, request: LoginRequest) -> tuple[None, dict[str, str], str, int]:
        """As the toolkit's: URI (none), headers, body and status of RFC 6749 section 5.1."""
        self.server.default_grant_type_handler.validate_token_request(request)
        token = self.server.default_token_type.create_token(request)
        return None, {}, json_text(token), HTTPStatus.OK


class TokenIssuer(OAuthLibMixin):
    """The toolkit's server, with our validator. One serves all requests."""

    # The toolkit has no types, and None here means "as the settings say".
    server_class = ClientCredentialsServer  # type: ignore[assignment]
    validator_class = LoginValidator  # type: ignore[assignment]
    oauthlib_backend_class = LoginBackend  # type: ignore[assignment]

    def issue(self, request: LoginRequest) -> IssuedLogin:
        """All three steps. Raises Refused with the first "no", NoStatusIndex before it signs."""
        _uri, _headers, body, _status = self.create_token_response(request)
        client, token, index = request.client, request.token, request.index
        if client is None or token is None or index is None:
            raise TypeError("oauthlib has not asked all that it should.")
        return IssuedLogin(client, token, index, body)
