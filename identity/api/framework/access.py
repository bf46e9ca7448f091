"""Who may use the management API: a system user to which staff gave its scope, for itself."""

from typing import Any

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from identity.management_api import CHANGE, MANAGEMENT_SCOPES, READ, base_url
from tokens.resource_server.active_token import ActiveTokenAuthentication
from tokens.resource_server.permissions import InsufficientScope
from tokens.resource_server.present_status import ActiveToken

_READ_METHODS = ("GET", "HEAD")
_NO_SCOPE = "This needs a token with the scope {scope}. Log in with scope={scope}."
_READS_ONLY = (
    "A token with the scope {read} reads only. To change something, log in with scope={scope}."
)
_ON_BEHALF = (
    "A token on behalf of another taxpayer does not open the management API. Log in without the"
    " header onbehalfof."
)
_OTHER_SCOPES = (
    "This token is also for other APIs, each of which could use it here. Log in with scope={scope}"
    " alone."
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
        token = caller.token
        reads = request.method in _READ_METHODS
        if MANAGEMENT_SCOPES.isdisjoint(token.scopes):
            scope = READ if reads and READ in settings.SCOPES else CHANGE
            raise InsufficientScope(_NO_SCOPE.format(scope=scope), scope)
        if not reads and CHANGE not in token.scopes:
            raise InsufficientScope(_READS_ONLY.format(read=READ, scope=CHANGE), CHANGE)
        if token.actor is not None:
            raise InsufficientScope(_ON_BEHALF)
        if not MANAGEMENT_SCOPES.issuperset(token.scopes):
            scope = CHANGE if CHANGE in token.scopes else READ
            raise InsufficientScope(_OTHER_SCOPES.format(scope=scope), scope)
        return True
