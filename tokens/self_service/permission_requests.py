"""`/api/v1/permission-requests`: an intermediary asks taxpayers whether it may act for them.

Nothing is read of the taxpayer that is named: a known one and an invented one get the same answer,
by the same statements (contract 4, "Requests and evidence").
"""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.facts.validity import may_act_for_others
from taxpayers.models import Intermediary, PermissionRequest
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.permission_requests import (
    ask_permission,
    withdraw_permission_request,
)
from taxpayers.validation import ServiceError
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.errors import InsufficientScope
from tokens.self_service.requested import (
    JsonBody,
    RequestConflict,
    as_json,
    id_in,
    read_body,
    taxpayer_in,
)
from tokens.self_service.view import OwnTaxpayerView, moment_in

SCOPE = "PermissionRequestAPI"
PAGE_SIZE = 100
_NOT_FOUND = "This client has no such permission request."
_NO_INTERMEDIARY = "The taxpayer of this client is no active intermediary. Ask the tax authority."


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
    parser_classes = (JsonBody,)

    @property
    def own(self) -> "QuerySet[PermissionRequest]":
        """What this client, or another one of its intermediary, has asked."""
        rows = PermissionRequest.objects.select_related("permission")
        return rows.filter(intermediary__taxpayer__system_users=self.caller.login.client.id)

    def found(self, text: str) -> PermissionRequest:
        """Raises NotFound: also for a request of another intermediary."""
        row = self.own.filter(pk=key).first() if (key := id_in(text)) else None
        if row is None:
            raise NotFound(_NOT_FOUND)
        return row

    def as_json(self, row: PermissionRequest) -> dict[str, Any]:
        """A request, and once it is approved, what was granted."""
        granted = row.permission
        return as_json(
            row,
            self.caller.at,
            permissions=row.codes.split(),
            valid_from=rfc3339_or_none(row.valid_from),
            replaces=row.replaces,
            granted=granted
            and {
                "permissions": codes_of(granted),
                "valid_from": rfc3339(granted.valid_from),
                "valid_until": rfc3339_or_none(granted.valid_until),
            },
        )


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
        given = read_body(_Asked, request.data)
        taxpayer = taxpayer_in(given["taxpayer"])
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


requests, request, withdraw = RequestsView.as_view(), RequestView.as_view(), WithdrawView.as_view()
