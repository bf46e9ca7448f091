"""`/api/v1/permission-requests`: an intermediary asks taxpayers whether it may act for them.

Nothing is read of the taxpayer that is named: a known one and an invented one get the same answer,
by the same statements (contract 4, "Requests and evidence").
"""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.facts.validity import may_act_for_others
from taxpayers.models import Intermediary, PermissionRequest
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.permission_requests import ask_permission
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.errors import InsufficientScope
from tokens.self_service.requested import AskedBody, RequestsView
from tokens.self_service.view import OwnTaxpayerView, moment_in

SCOPE = "PermissionRequestAPI"
PAGE_SIZE = 100
_NO_INTERMEDIARY = "The taxpayer of this client is no active intermediary. Ask the tax authority."


class _Asked(AskedBody):
    """Codes, and from when."""

    permissions = serializers.ListField(
        child=serializers.CharField(max_length=64), allow_empty=False, max_length=100
    )
    valid_from = serializers.CharField(required=False, allow_null=True)
    replaces = serializers.BooleanField(required=False, default=False)


class PermissionRequests(OwnTaxpayerView, RequestsView):
    """What the client's intermediary asks."""

    scope = SCOPE
    body = _Asked
    not_found = "This client has no such permission request."

    @property
    def own(self) -> "QuerySet[PermissionRequest]":
        """What this client, or another one of its intermediary, has asked."""
        rows = PermissionRequest.objects.select_related("permission")
        return rows.filter(intermediary__taxpayer__system_users=self.caller.login.client.id)

    def list(self, request: Request) -> Response:
        """One page, the newest first."""
        page = self.page(request, self.own, ("-pk",), PAGE_SIZE)
        rows = [self.as_json(row) for row in page.rows]
        return Response({"requests": rows, "next_cursor": page.next_cursor})

    def ask(self, given: dict[str, Any], **common: Any) -> PermissionRequest:
        user, role = self.system_user, self.caller.login.client.intermediary
        if role is None or not may_act_for_others(role, self.at):
            raise InsufficientScope(_NO_INTERMEDIARY)
        if (back := given["return_address"]) and back not in user.return_addresses.split():
            raise ParseError(
                "return_address is not registered for this client. Ask the tax authority."
            )
        roles = Intermediary.objects.select_related("taxpayer")
        return ask_permission(
            intermediary=roles.get(taxpayer=user.taxpayer),
            codes=given["permissions"],
            client_id=user.client_id,
            valid_from=moment_in(given.get("valid_from"), "valid_from"),
            replaces=given["replaces"],
            **common,
        )

    def more(self, row: PermissionRequest) -> dict[str, Any]:
        """Once it is approved, also what was granted."""
        granted = row.permission
        return {
            "permissions": row.codes.split(),
            "valid_from": rfc3339_or_none(row.valid_from),
            "replaces": row.replaces,
            "granted": granted
            and {
                "permissions": codes_of(granted),
                "valid_from": rfc3339(granted.valid_from),
                "valid_until": rfc3339_or_none(granted.valid_until),
            },
        }


requests = PermissionRequests.as_view({"get": "list", "post": "create"})
request = PermissionRequests.as_view({"get": "retrieve"})
withdraw = PermissionRequests.as_view({"post": "withdraw"})
