"""What all addresses of the management API have in common: who calls, the answer, the log line."""

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

from identity.api.framework.access import ManagementAuthentication, MayManage
from identity.api.framework.json_body import JsonBody
from identity.api.framework.problem_answers import answer_problem
from identity.api.framework.problems import PROBLEMS, Problem
from identity.api.framework.schema import ManagementSchema
from identity.management_api import scopes_that_change, scopes_that_read
from taxpayers.duties import Duty
from taxpayers.services import Author
from tokens.resource_server.answered_view import AnsweredView

ANSWER_SECONDS = 10.0  # a change may wait for another one of the same record


class ManagementView(AnsweredView):
    """Opens to the authority's own programs.

    The `correlationId` of an answer is also in the history of what it changed.
    """

    authentication_classes: Sequence[type[BaseAuthentication]] = (ManagementAuthentication,)
    permission_classes: Sequence[type[BasePermission]] = (MayManage,)
    parser_classes: Sequence[type[BaseParser]] = (JsonBody,)
    http_method_names: Sequence[str] = ("get", "head", "post", "patch")
    schema = ManagementSchema()
    answer_seconds = ANSWER_SECONDS
    logger = logging.getLogger("identity.api")
    log_message = "management API"

    def perform_authentication(self, request: Request) -> None:
        """Raises Problem for a request without HTTPS, before its token is looked at."""
        scheme = request.META.get("wsgi.url_scheme", "http")
        must_be = settings.AUTH_URL.startswith("https:")
        if must_be and not self.proxies.is_secure(request.META, scheme):
            raise Problem("insecure_transport", PROBLEMS["insecure_transport"].advice)
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

    @property
    def author(self) -> Author:
        """Who stands in the history: the client, its address, and the correlation id."""
        return Author.client(self.caller.token.client_id, self.source_address, self.reference)

    def handle_exception(self, exc: Exception) -> Response:
        """Every exception becomes a problem."""
        if isinstance(exc, (NotAuthenticated, AuthenticationFailed)):
            exc.auth_header = self.get_authenticate_header(self.request)  # type: ignore[union-attr]
        return answer_problem(exc, str(self.reference))

    def operation_of(self, request: Request) -> str:
        """With the whole path: it names records of the registry, and no secret."""
        return f"{request.method} {request.path}"[:200]
