"""`/api/v1/connections`: an ERP system with a new key asks whether it may log in as its taxpayer.

There is no token yet, and never a secret: each call proves the key (DPoP, RFC 9449). Anyone can
ask, so calls are limited by address before anything is verified; the taxpayer is not looked up.
"""

import logging
import time
from typing import Any, cast

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import NotFound, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.client_keys import thumbprint_of
from taxpayers.models import DEFAULT_SCOPE, PermissionRequest
from taxpayers.services import Author, AuthorKind
from taxpayers.services.connections import ask_connection
from taxpayers.services.permission_requests import withdraw_permission_request
from taxpayers.validation import ServiceError
from tokens.http import rfc3339_or_none
from tokens.rate_limits.backoff import counted_address
from tokens.rate_limits.call_limit import CallLimit
from tokens.resource_server.active_token import dpop_challenge
from tokens.resource_server.answered_view import AnsweredView
from tokens.resource_server.authentication import ANSWER_SECONDS, Challenge
from tokens.resource_server.proved_key import KeyAuthentication, ProvedKey
from tokens.self_service.requested import (
    JsonBody,
    RequestConflict,
    as_json,
    id_in,
    read_body,
    taxpayer_in,
)
from tokens.self_service.view import moment_in

POLL_SECONDS = 5
# Of one address in one process: asking writes, and a vendor polls for many at once.
_LIMITS = {"POST": (30, 1.0), "GET": (300, 0.05)}
_MOST_ADDRESSES = 10_000
_calls = CallLimit(_MOST_ADDRESSES)
_NOT_FOUND = "There is no such connection. Ask again."
_OTHER_KEY = "The proof is signed with another key than the one that asked."


class _Asked(serializers.Serializer[Any]):
    """The body of a request; the key is in the proof."""

    taxpayer = serializers.CharField(max_length=129)
    name = serializers.CharField()
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=64),
        allow_empty=False,
        max_length=100,
        default=[DEFAULT_SCOPE],
    )
    valid_until = serializers.CharField(required=False, allow_null=True)
    reference = serializers.CharField(required=False, default="", allow_blank=True)
    return_address = serializers.CharField(required=False, default="", allow_blank=True)


class _View(AnsweredView):
    authentication_classes = (KeyAuthentication,)
    permission_classes = ()
    parser_classes = (JsonBody,)
    answer_seconds = ANSWER_SECONDS
    logger = logging.getLogger("tokens.self_service")
    log_message = "connection"

    def perform_authentication(self, request: Request) -> None:
        self.at = timezone.now()
        burst, seconds = _LIMITS.get(request.method or "", _LIMITS["GET"])
        key = request.method, counted_address(self.source_address)
        wait = _calls.seconds_to_wait(key, time.monotonic(), burst=burst, seconds=seconds)
        if wait:
            raise Throttled(wait, "Too many requests from this address.")
        super().perform_authentication(request)

    @property
    def key(self) -> ProvedKey:
        """That the caller possesses."""
        key: Any = self.request.auth
        return cast("ProvedKey", key)

    @property
    def author(self) -> Author:
        """Who stands in the history: anyone, with this key."""
        name = f"key {self.key.thumbprint}"
        return Author(name, self.source_address, self.reference, AuthorKind.CLIENT)

    def found(self, text: str) -> PermissionRequest:
        """What this key has asked. Raises NotFound or Challenge."""
        rows = PermissionRequest.objects.filter(intermediary=None).select_related("system_user")
        row = rows.filter(pk=key).first() if (key := id_in(text)) else None
        if row is None:
            raise NotFound(_NOT_FOUND)
        if thumbprint_of(row.public_jwk) != self.key.thumbprint:
            raise Challenge(dpop_challenge(_OTHER_KEY))
        self.key.use_once()
        return row

    def answer(self, row: PermissionRequest, status: int = 200) -> Response:
        """A request, and once it is approved, the client that it became."""
        user = row.system_user
        body = as_json(
            row,
            self.at,
            name=row.name,
            scopes=row.codes.split(),
            key_fingerprint=row.fingerprint,
            poll_seconds=POLL_SECONDS,
            connected=user
            and {
                "client_id": user.client_id,
                "scopes": user.scopes.split(),
                "expires_at": rfc3339_or_none(user.expires_at),
            },
        )
        headers = {"Location": f"/api/v1/connections/{row.pk}"} if status == 202 else {}
        return Response(body, status=status, headers=headers)


class ConnectionsView(_View):
    """Ask. 202: it waits for the taxpayer, if there is one."""

    http_method_names = ("post",)

    def post(self, request: Request) -> Response:
        given = read_body(_Asked, request.data)
        taxpayer = taxpayer_in(given["taxpayer"])
        until = moment_in(given.get("valid_until"), "valid_until", is_end=True)
        self.key.use_once()
        try:
            row = ask_connection(
                taxpayer=taxpayer,
                key=self.key.jwk,
                name=given["name"],
                scopes=given["scopes"],
                valid_until=until,
                own_reference=given["reference"],
                return_address=given["return_address"],
                source=counted_address(self.source_address),
                by=self.author,
                at=self.at,
            )
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        return self.answer(row, 202)


class ConnectionView(_View):
    """One request, to poll."""

    http_method_names = ("get", "head")

    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        return self.answer(self.found(id))


class WithdrawView(_View):
    """Withdraw a request that is open. Safe to repeat; a body is not read."""

    http_method_names = ("post",)

    def post(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        row = self.found(id)
        try:
            row = withdraw_permission_request(request=row, by=self.author, at=self.at)
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        return self.answer(row)


connections, connection, withdraw = (
    view.as_view() for view in (ConnectionsView, ConnectionView, WithdrawView)
)
