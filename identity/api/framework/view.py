"""What all addresses of the management API share: who may use it, the answer, the log line."""

import logging
from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from identity.api.framework.json_body import JsonBody
from identity.api.framework.problem_answers import answer_problem
from identity.api.framework.problems import Problem
from identity.api.framework.schema import ManagementSchema
from identity.management_api import base_url, scopes_that_change, scopes_that_read
from taxpayers.duties import MANAGEMENT_SCOPES, WHOLE, Duty
from tokens.resource_server.active_token import ActiveToken
from tokens.resource_server.answered_view import AnsweredView
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


class ManagementView(AnsweredView):
    """The `correlationId` of an answer is also in the history of what it changed."""

    authentication_classes: Sequence[type[BaseAuthentication]] = (ManagementAuthentication,)
    permission_classes: Sequence[type[BasePermission]] = (MayManage,)
    parser_classes: Sequence[type[BaseParser]] = (JsonBody,)
    http_method_names: Sequence[str] = ("get", "head", "post", "patch")
    schema = ManagementSchema()
    answer_seconds = 10.0  # a change may wait for another one of the same record
    logger = logging.getLogger("identity.api")
    log_message = "management API"

    def perform_authentication(self, request: Request) -> None:
        """Raises Problem for a request without HTTPS, before its token is looked at."""
        scheme = request.META.get("wsgi.url_scheme", "http")
        must_be = settings.AUTH_URL.startswith("https:")
        if must_be and not self.proxies.is_secure(request.META, scheme):
            raise Problem("insecure_transport")
        super().perform_authentication(request)

    def scopes_for(self, method: str) -> Sequence[str]:
        """The scopes each of which is enough for this method."""
        if method in ("GET", "HEAD"):
            return scopes_that_read(self.read_by)
        return scopes_that_change(self.duty)

    @property
    def duty(self) -> Duty:
        """The duty that what is changed here belongs to."""
        raise NotImplementedError

    @property
    def read_by(self) -> Collection[Duty]:
        """The duties that need what is read here."""
        return (self.duty,)

    def describe(self, method: str) -> dict[str, Any]:
        """What the OpenAPI description says of this method, for those that are in it."""
        raise NotImplementedError

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, (NotAuthenticated, AuthenticationFailed)):
            exc.auth_header = self.get_authenticate_header(self.request)  # type: ignore[union-attr]
        return answer_problem(exc, str(self.reference))

    def operation_of(self, request: Request) -> str:
        """With the whole path: it names records of the registry, and no secret."""
        return f"{request.method} {request.path}"[:200]
