"""What all addresses of the management API have in common: who calls, the answer, the log line."""

import logging
from collections.abc import Sequence
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from uuid_utils.compat import uuid7

from identity.api.framework.access import ManagementAuthentication, MayManage
from identity.api.framework.json_body import JsonBody, MergePatchBody
from identity.api.framework.problem_answers import answer_problem
from identity.api.framework.problems import PROBLEMS, Problem
from identity.api.framework.schema import ManagementSchema
from taxpayers.services import Author
from taxpayers.shut_down import answered_within
from tokens.access_tokens.present_status import ActiveToken
from tokens.endpoint.proxies import TrustedProxies
from tokens.resource_server.negotiation import AlwaysJson

ANSWER_SECONDS = 10.0  # a change may wait for another one of the same record

logger = logging.getLogger("identity.api")


class JsonAlways(AlwaysJson, DefaultContentNegotiation):
    """Answers JSON whatever `Accept` says; reads what `Content-Type` says."""


class ManagementView(APIView):
    """Opens to the authority's own programs.

    Every answer has a `correlationId`, which is also in the history of what it changed, and a line
    in the log, and is stored by no cache.
    """

    authentication_classes: Sequence[type[BaseAuthentication]] = (ManagementAuthentication,)
    permission_classes: Sequence[type[BasePermission]] = (MayManage,)
    content_negotiation_class = JsonAlways
    parser_classes = (JsonBody, MergePatchBody)
    http_method_names: Sequence[str] = ("get", "head", "post", "patch")
    schema = ManagementSchema()

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.reference = uuid7()
        proxies = TrustedProxies(settings.TRUSTED_PROXIES)
        self.source_address = proxies.source_address(request.META)
        self._is_secure = not settings.AUTH_URL.startswith("https:") or proxies.is_secure(
            request.META, request.META.get("wsgi.url_scheme", "http")
        )
        self._authenticated: ActiveToken | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with answered_within(ANSWER_SECONDS):
            return super().dispatch(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        """Raises Problem for a request without HTTPS, before its token is looked at."""
        if not self._is_secure:
            raise Problem("insecure_transport", PROBLEMS["insecure_transport"].advice)
        self._authenticated = cast("ActiveToken | None", request.user)

    def describe(self, method: str) -> dict[str, Any]:
        """What the OpenAPI description says of this method, for those that are in it."""
        raise NotImplementedError

    @property
    def caller(self) -> ActiveToken:
        """The token that was sent, its client, and the moment by the database's clock."""
        if self._authenticated is None:
            raise RuntimeError("nobody was authenticated yet")
        return self._authenticated

    @property
    def author(self) -> Author:
        """Who stands in the history: the client, its address, and the correlation id."""
        return Author(
            f"{self.caller.token.client_id} (client)", self.source_address, self.reference
        )

    def handle_exception(self, exc: Exception) -> Response:
        """Every exception becomes a problem."""
        if isinstance(exc, (NotAuthenticated, AuthenticationFailed)):
            exc.auth_header = self.get_authenticate_header(self.request)  # type: ignore[union-attr]
        return answer_problem(exc, str(self.reference))

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        answer["correlationId"] = str(self.reference)
        token = self._authenticated.token if self._authenticated else None
        logger.info(
            "management API",
            extra={
                "reference": str(self.reference),
                "operation": f"{request.method} {request.path}"[:200],
                "status": answer.status_code,
                "client_id": token.client_id if token else "",
                "login": token.jti if token else "",
                "source_address": self.source_address,
            },
        )
        return answer
