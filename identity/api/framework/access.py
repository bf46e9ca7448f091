"""Who may use the management API: a system user to which staff gave its scope, for itself."""

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from identity.management_api import base_url
from taxpayers.duties import MANAGEMENT_SCOPES, WHOLE
from tokens.resource_server.active_token import ActiveToken
from tokens.resource_server.authentication import ActiveTokenAuthentication
from tokens.resource_server.errors import InsufficientScope

_NO_SCOPE = "This needs a token with the scope {scope}. Log in with scope={scope}."
_ON_BEHALF = (
    "A token on behalf of another taxpayer does not open the management API. Log in without the"
    " header onbehalfof."
)
_OTHER_SCOPES = (
    "This token is also for other APIs, each of which could use it here. Log in only with"
    " scope={scope}."
)


class ManagementAuthentication(ActiveTokenAuthentication):
    """An access token that is active by the registry now; `request.user` is an ActiveToken."""

    def called_url(self, request: Request) -> str:
        """The address of staff, not that of clients: a DPoP proof is for it."""
        return base_url()


class MayManage(BasePermission):
    """The token is for the management API, and for nothing else."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises InsufficientScope, which names what the token lacks."""
        caller: Any = request.user
        if not isinstance(caller, ActiveToken):
            return False
        token, enough = caller.token, view.scopes_for(request.method)  # type: ignore[attr-defined]
        if not (given := [scope for scope in enough if scope in token.scopes]):
            scope = _scope_to_ask_for(enough, caller.login.client.scopes)
            raise InsufficientScope(_NO_SCOPE.format(scope=scope), scope)
        if token.actor is not None:
            raise InsufficientScope(_ON_BEHALF)
        if not MANAGEMENT_SCOPES.issuperset(token.scopes):
            raise InsufficientScope(_OTHER_SCOPES.format(scope=given[0]), given[0])
        return True


def _scope_to_ask_for(enough: Sequence[str], of_client: Collection[str]) -> str:
    """One that the client has, otherwise one that the operators have added to this service."""
    known = [scope for scope in enough if scope in settings.SCOPES] or [WHOLE]
    return next((scope for scope in known if scope in of_client), known[0])
