"""What the addresses have in common where a client sees and ends what is its own."""

import logging
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from uuid_utils.compat import uuid7

from taxpayers.shut_down import answered_within
from tokens.access_tokens.present_status import ANSWER_SECONDS, ActiveToken
from tokens.endpoint.proxies import TrustedProxies
from tokens.resource_server.active_token import ActiveTokenAuthentication

logger = logging.getLogger("tokens.self_service")


class SelfServiceView(APIView):
    """Opens to every active token, whatever its scope: what it shows is the client's own.

    Every answer has a `correlationId`, a line in the log, and is stored by no cache.
    """

    authentication_classes = (ActiveTokenAuthentication,)

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.reference = uuid7()
        proxies = TrustedProxies(settings.TRUSTED_PROXIES)
        self.source_address = proxies.source_address(request.META)
        self._authenticated: ActiveToken | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with answered_within(ANSWER_SECONDS):
            return super().dispatch(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        self._authenticated = cast("ActiveToken", request.user)

    @property
    def caller(self) -> ActiveToken:
        """The token that was sent, and its client."""
        if self._authenticated is None:
            raise RuntimeError("nobody was authenticated yet")
        return self._authenticated

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        answer["correlationId"] = str(self.reference)
        token = self._authenticated.token if self._authenticated else None
        logger.info(
            "self service",
            extra={
                "reference": str(self.reference),
                "operation": f"{request.method} {type(self).__name__}",
                "status": answer.status_code,
                "client_id": token.client_id if token else "",
                "login": token.jti if token else "",
                "source_address": self.source_address,
            },
        )
        return answer
