"""The same for the REST framework: one request at a time, on Django's connection."""

from datetime import UTC, datetime

from django.utils.encoding import escape_uri_path
from rest_framework import status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from taxpayers.shut_down import answered_within
from tokens.access_tokens.verification import AccessToken
from tokens.request.arrival import called_url, reported_certificate
from tokens.resource_server.active_token import ActiveToken, Unauthorized, authenticate
from tokens.resource_server.possession import ApiRequest
from tokens.store.django_store import perform_all

ANSWER_SECONDS = 1.5  # so that a database that hangs is a 503 within 2 seconds


class Challenge(APIException):
    """401 with its challenge; `error` is its code."""

    status_code = status.HTTP_401_UNAUTHORIZED

    def __init__(self, fault: Unauthorized) -> None:
        super().__init__(str(fault))
        self.error, self.auth_header = fault.error, fault.challenge


class ActiveTokenAuthentication(BaseAuthentication):
    """An `ActiveToken` as `request.user`, its `AccessToken` as `request.auth`.

    A token of a blocked client is refused at once, as the registry is asked.
    """

    def authenticate(self, request: Request) -> tuple[ActiveToken, AccessToken]:
        """Raises Challenge, or django.db.DatabaseError."""
        sent = api_request(request, self.called_url(request))
        try:
            with answered_within(ANSWER_SECONDS):
                caller = perform_all(authenticate(sent, datetime.now(UTC)))
        except Unauthorized as fault:
            raise Challenge(fault) from None
        return caller, caller.token

    def called_url(self, request: Request) -> str:
        """The base address at which this API is called."""
        return called_url(reported_certificate(request.META))


def api_request(request: Request, called: str) -> ApiRequest:
    """What was sent, to this base address."""
    return ApiRequest(
        method=request.method or "",
        address=f"{called}{escape_uri_path(request.path)}",
        authorization=request.META.get("HTTP_AUTHORIZATION", ""),
        dpop=request.META.get("HTTP_DPOP"),
        certificate=reported_certificate(request.META),
    )
