"""Answers oauthlib's questions about one login; decides nothing itself (contract 1 and 4)."""

from typing import Any

from django.conf import settings
from oauth2_provider.oauth2_validators import OAuth2Validator

from taxpayers.facts.query import load_facts
from taxpayers.rules import AuthorizationRequest, Reason, Refusal, Refused, decide
from tokens.endpoint.toolkit import LoginRequest


class LoginValidator(OAuth2Validator):
    """One instance serves all requests: what belongs to a login is kept on its request.

    oauthlib asks in this order; whatever is wrong is raised as Refused, never answered with False.
    """

    def authenticate_client(self, request: LoginRequest, *args: Any, **kwargs: Any) -> bool:
        """Is the secret one of the client's?"""
        login = request.login
        attempt = login.attempt
        login.facts = load_facts(attempt.client_id, login.hashed_secret, attempt.on_behalf_of)
        if login.facts is None:
            raise Refused(Refusal(Reason.INVALID_CREDENTIALS))
        request.client = login.facts.client
        return True

    def validate_grant_type(self, *args: Any, **kwargs: Any) -> bool:
        """May the client use this grant? There is one, and the server knows no other."""
        return True

    def get_default_scopes(self, *args: Any, **kwargs: Any) -> list[str]:
        """What if no scope is asked for? It is decided with everything else."""
        return []

    def validate_scopes(
        self, client_id: str, scopes: list[str], client: Any, request: LoginRequest, **kwargs: Any
    ) -> bool:
        """The last question, and so the decision: may it have a token, for whom, with what?"""
        login = request.login
        assert login.facts is not None  # noqa: S101 - oauthlib authenticates first
        decision = decide(
            AuthorizationRequest(
                login.facts,
                asked_scopes=login.attempt.scopes,
                known_scopes=tuple(settings.SCOPES),
                at=login.at,
            )
        )
        if isinstance(decision, Refusal):
            raise Refused(decision)
        login.authorization = decision
        # oauthlib writes these into the answer; without any it writes none (specification 2.1).
        request.scopes = list(decision.scopes) if decision.scopes_differ else None
        return True

    def save_token(self, token: dict[str, Any], request: LoginRequest, **kwargs: Any) -> None:
        """Nothing: an access token is never stored. Its login is recorded by the one exit."""
