"""`/api/v1/permission-requests`: an intermediary asks taxpayers whether it may act for them.

Nothing is read of the taxpayer that is named: a known one and an invented one get the same answer,
by the same statements (contract 4, "Requests and evidence").
"""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, NotFound, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.facts.validity import may_act_for_others
from taxpayers.identifiers import MalformedIdentifier
from taxpayers.models import Intermediary, PermissionRequest
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.permission_requests import (
    ask_permission,
    withdraw_permission_request,
)
from taxpayers.validation import ServiceError, taxpayer_notation
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.errors import InsufficientScope
from tokens.self_service.view import OwnTaxpayerView, moment_in

SCOPE = "PermissionRequestAPI"
PAGE_SIZE = 100
_NOT_FOUND = "This client has no such permission request."
_NO_INTERMEDIARY = "The taxpayer of this client is no active intermediary. Ask the tax authority."


class RequestConflict(APIException):
    """409: the state of this request, or of the client's others, does not allow it."""

    status_code = status.HTTP_409_CONFLICT


class _Asked(serializers.Serializer[Any]):
    """The body of a request."""

    taxpayer = serializers.CharField(max_length=129)
    permissions = serializers.ListField(
        child=serializers.CharField(max_length=64), allow_empty=False, max_length=100
    )
    valid_from = serializers.CharField(required=False, allow_null=True)
    valid_until = serializers.CharField(required=False, allow_null=True)
    replaces = serializers.BooleanField(required=False, default=False)
    reference = serializers.CharField(required=False, default="", allow_blank=True)
    return_address = serializers.CharField(required=False, default="", allow_blank=True)


class _View(OwnTaxpayerView):
    scope = SCOPE
    parser_classes = (JSONParser,)

    @property
    def own(self) -> "QuerySet[PermissionRequest]":
        """What this client, or another one of its intermediary, has asked."""
        rows = PermissionRequest.objects.select_related("permission")
        return rows.filter(intermediary__taxpayer__system_users=self.caller.login.client.id)

    def found(self, text: str) -> PermissionRequest:
        """Raises NotFound: also for a request of another intermediary."""
        row = self.own.filter(pk=key).first() if (key := _key(text)) else None
        if row is None:
            raise NotFound(_NOT_FOUND)
        return row

    def as_json(self, row: PermissionRequest) -> dict[str, Any]:
        """A request, and once it is approved, what was granted."""
        granted = row.permission
        return {
            "id": str(row.pk),
            "state": row.state_at(self.caller.at),
            "taxpayer": str(row.asked),
            "permissions": row.codes.split(),
            "valid_from": rfc3339_or_none(row.valid_from),
            "valid_until": rfc3339_or_none(row.valid_until),
            "replaces": row.replaces,
            "reference": row.own_reference,
            "return_address": row.return_address or None,
            "asked_at": rfc3339(row.created_at),
            "expires_at": rfc3339(row.expires_at),
            "decided_at": rfc3339_or_none(row.decided_at),
            "granted": granted
            and {
                "permissions": codes_of(granted),
                "valid_from": rfc3339(granted.valid_from),
                "valid_until": rfc3339_or_none(granted.valid_until),
            },
            "confirm_url": f"{settings.CONFIRM_URL}/{row.pk}",
        }


class RequestsView(_View):
    """The requests of the client's intermediary, the newest first; POST adds one."""

    http_method_names = ("get", "head", "post")

    def get(self, request: Request) -> Response:
        """One page."""
        page = self.page(request, self.own, ("-pk",), PAGE_SIZE)
        return Response(
            {
                "requests": [self.as_json(row) for row in page.rows],
                "next_cursor": page.next_cursor,
            }
        )

    def post(self, request: Request) -> Response:
        """Ask. 202: it waits for the taxpayer, if there is one."""
        given = _read(request.data)
        try:
            taxpayer = taxpayer_notation().parse(given["taxpayer"])
        except MalformedIdentifier as fault:
            raise ParseError(f"taxpayer must be TIN or TIN:ROB: {fault}.") from None
        user, role = self.system_user, self.caller.login.client.intermediary
        if role is None or not may_act_for_others(role, self.caller.at):
            raise InsufficientScope(_NO_INTERMEDIARY)
        if (back := given["return_address"]) and back not in user.return_addresses.split():
            raise ParseError(
                "return_address is not registered for this client. Ask the tax authority."
            )
        try:
            row = ask_permission(
                taxpayer=taxpayer,
                intermediary=Intermediary.objects.select_related("taxpayer").get(
                    taxpayer=user.taxpayer
                ),
                codes=given["permissions"],
                client_id=user.client_id,
                valid_from=moment_in(given.get("valid_from"), "valid_from"),
                valid_until=moment_in(given.get("valid_until"), "valid_until", is_end=True),
                replaces=given["replaces"],
                own_reference=given["reference"],
                return_address=back,
                by=self.author,
                at=self.caller.at,
            )
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        headers = {"Location": f"/api/v1/permission-requests/{row.pk}"}
        return Response(self.as_json(row), status=202, headers=headers)


class RequestView(_View):
    """One request, to poll."""

    http_method_names = ("get", "head")

    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        return Response(self.as_json(self.found(id)))


class WithdrawView(_View):
    """Withdraw a request that is open. Safe to repeat; a body is not read."""

    http_method_names = ("post",)

    def post(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        try:
            row = withdraw_permission_request(
                request=self.found(id), by=self.author, at=self.caller.at
            )
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        return Response(self.as_json(row))


def _key(text: str) -> UUID | None:
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None


def _read(data: Any) -> dict[str, Any]:
    """The fields of a body. Raises ParseError, which names the first that is wrong."""
    if not isinstance(data, dict):
        raise ParseError("The body must be a JSON object.")
    asked = _Asked(data=data)
    if unknown := sorted(set(data) - set(asked.fields)):
        raise ParseError(f"There is no field {unknown[0][:40]}: {', '.join(asked.fields)}.")
    if not asked.is_valid():
        name, faults = next(iter(asked.errors.items()))
        raise ParseError(f"{name}: {_first(faults)}")
    return dict(asked.validated_data)


def _first(faults: Any) -> str:
    while isinstance(faults, dict | list):
        faults = next(iter(faults.values() if isinstance(faults, dict) else faults))
    return str(faults)


requests, request, withdraw = RequestsView.as_view(), RequestView.as_view(), WithdrawView.as_view()
