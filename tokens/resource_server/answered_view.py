"""What the addresses for programs have in common: who calls, until when it is answered, the log."""

import logging
from typing import Any, ClassVar, cast

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from uuid_utils.compat import uuid7

from taxpayers.services import Author
from taxpayers.shut_down import answered_within
from tokens.request.proxies import TrustedProxies
from tokens.resource_server.active_token import ActiveToken


class AnsweredView(APIView):
    """Every answer has a `correlationId`, a line in the log, and is stored by no cache.

    Its authentication must make `request.user` an `ActiveToken`, or None.
    """

    answer_seconds: ClassVar[float]
    logger: ClassVar[logging.Logger]
    log_message: ClassVar[str]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.reference = uuid7()
        self.proxies = TrustedProxies(settings.TRUSTED_PROXIES)
        self.source_address = self.proxies.source_address(request.META)
        self._authenticated: ActiveToken | None = None
        with answered_within(self.answer_seconds):
            return super().dispatch(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        self._authenticated = cast("ActiveToken | None", request.user)

    @property
    def caller(self) -> ActiveToken:
        """The token that was sent, its client, and the moment by the database's clock."""
        if self._authenticated is None:
            raise RuntimeError("no caller was authenticated yet")
        return self._authenticated

    @property
    def author(self) -> Author:
        """Who stands in the history: the client, its address, and the correlation id."""
        return Author.client(self.caller.token.client_id, self.source_address, self.reference)

    def operation_of(self, request: Request) -> str:
        """What was called, for the log: without what only this client may know."""
        return f"{request.method} {type(self).__name__}"

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        answer["correlationId"] = str(self.reference)
        token = self._authenticated.token if self._authenticated else None
        self.logger.info(
            self.log_message,
            extra={
                "reference": str(self.reference),
                "operation": self.operation_of(request),
                "status": answer.status_code,
                "client_id": token.client_id if token else "",
                "login": token.jti if token else "",
                "source_address": self.source_address,
            },
        )
        return answer
