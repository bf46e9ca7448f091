"""`/api/v1/connections`: an ERP system with a new key asks whether it may log in as its taxpayer.

Each call proves the key (DPoP, RFC 9449). Anyone can ask, so an address is limited before that.
"""

import logging
import time
from datetime import datetime
from typing import Any, cast

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from taxpayers.client_keys import thumbprint_of
from taxpayers.models import DEFAULT_SCOPE, PermissionRequest
from taxpayers.services import Author, AuthorKind
from taxpayers.services.connections import ask_connection
from tokens.http import rfc3339_or_none
from tokens.rate_limits.backoff import counted_address
from tokens.rate_limits.call_limit import CallLimit
from tokens.resource_server import authentication
from tokens.resource_server.active_token import dpop_challenge
from tokens.self_service.requested import AskedBody, RequestsView

POLL_SECONDS = 5
# Of one address in one process: asking writes, and a vendor polls for many at once.
_LIMITS = {"POST": (30, 1.0), "GET": (300, 0.05)}
_MOST_ADDRESSES = 10_000
_calls = CallLimit(_MOST_ADDRESSES)
_OTHER_KEY = "The proof is signed with another key than the one that asked."


class _Asked(AskedBody):
    """The key is in the proof."""

    name = serializers.CharField()
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=64),
        allow_empty=False,
        max_length=100,
        default=[DEFAULT_SCOPE],
    )


class Connections(RequestsView):
    """What a key asks."""

    authentication_classes = (authentication.KeyAuthentication,)
    permission_classes = ()
    answer_seconds = authentication.ANSWER_SECONDS
    logger = logging.getLogger("tokens.self_service")
    log_message = "connection"
    body = _Asked
    not_found = "There is no such connection. Ask again."

    def perform_authentication(self, request: Request) -> None:
        self._at = timezone.now()
        burst, seconds = _LIMITS.get(request.method or "", _LIMITS["GET"])
        key = request.method, counted_address(self.source_address)
        wait = _calls.seconds_to_wait(key, time.monotonic(), burst=burst, seconds=seconds)
        if wait:
            raise Throttled(wait, "Too many requests from this address.")
        super().perform_authentication(request)

    @property
    def key(self) -> authentication.ProvedKey:
        """That the caller possesses."""
        key: Any = self.request.auth
        return cast("authentication.ProvedKey", key)

    @property
    def at(self) -> datetime:
        return self._at

    @property
    def author(self) -> Author:
        name = f"key {self.key.thumbprint}"  # anyone, with this key
        return Author(name, self.source_address, self.reference, AuthorKind.CLIENT)

    @property
    def own(self) -> "QuerySet[PermissionRequest]":
        return PermissionRequest.objects.filter(intermediary=None).select_related("system_user")

    def found(self, text: str) -> PermissionRequest:
        """What this key has asked. Raises NotFound or Challenge."""
        row = super().found(text)
        if thumbprint_of(row.public_jwk) != self.key.thumbprint:
            raise authentication.Challenge(dpop_challenge(_OTHER_KEY))
        self.key.use_once()
        return row

    def ask(self, given: dict[str, Any], **common: Any) -> PermissionRequest:
        self.key.use_once()
        source = counted_address(self.source_address)
        more = {"name": given["name"], "scopes": given["scopes"], "source": source}
        return ask_connection(key=self.key.jwk, **more, **common)

    def more(self, row: PermissionRequest) -> dict[str, Any]:
        """Once it is approved, also the client that it became."""
        user = row.system_user
        return {
            "name": row.name,
            "scopes": row.codes.split(),
            "key_fingerprint": row.fingerprint,
            "poll_seconds": POLL_SECONDS,
            "connected": user
            and {
                "client_id": user.client_id,
                "scopes": user.scopes.split(),
                "expires_at": rfc3339_or_none(user.expires_at),
            },
        }


connections = Connections.as_view({"post": "create"})
connection = Connections.as_view({"get": "retrieve"})
withdraw = Connections.as_view({"post": "withdraw"})
