"""`GET /api/v1/permissions`: for which taxpayers an intermediary may act, with what, until when."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.facts.validity import may_act_for_others
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.errors import InsufficientScope
from tokens.resource_server.pagination import MOST, USUAL_LIMIT, ListPage
from tokens.self_service.view import SelfServiceView, parameters_of, taxpayer_in

_NUMBER = re.compile("[1-9][0-9]{0,3}")
_ON_BEHALF = (
    "This token is only for another taxpayer, so it does not show for which others the intermediary"
    " may act. Log in without the header onbehalfof, and use that token."
)


class PermissionsView(SelfServiceView):
    """What taxpayers have granted to the intermediary of this client.

    For a token for its own taxpayer; a limited client sees what its represented one granted.
    """

    http_method_names = ("get", "head")

    def get(self, request: Request) -> Response:
        """One page; nothing while the registration as an intermediary is not active."""
        client, at = self.caller.login.client, self.caller.at
        represented = self.caller.login.represented
        if represented is not None and not client.is_limited:
            raise InsufficientScope(_ON_BEHALF)
        given = parameters_of(request, "taxpayer", "cursor", "limit")
        rule = "The parameter taxpayer must be TIN or TIN:ROB, as in onbehalfof"
        taxpayer = taxpayer_in(given["taxpayer"], rule) if "taxpayer" in given else None
        limit = _limit(given)
        is_of_another = False
        if represented is not None:
            is_of_another = taxpayer not in (None, represented.taxpayer)
            taxpayer = represented.taxpayer
        role = client.intermediary
        page = ListPage([], None)
        if role is not None and may_act_for_others(role, at) and not is_of_another:
            # Those of a taxpayer that is not active give no login a token, so they are left out, as
            # if there were none: no caller learns which taxpayers exist.
            rows = usable_permissions(client.id, taxpayer, at)
            page = self.page(request, rows, ("taxpayer_id", "pk"), limit)
            page = replace(page, rows=[row for row in page.rows if row.taxpayer.is_active])
        return Response(
            {
                "intermediary": role
                and {
                    "taxpayer": str(client.taxpayer),
                    "is_active": may_act_for_others(role, at),
                    "active_until": rfc3339_or_none(role.active_until),
                },
                "permissions": [
                    self._as_json(row, codes)
                    for row in page.rows
                    if (codes := self._codes(row)) or not client.allowed_permissions
                ],
                "next_cursor": page.next_cursor,
            }
        )

    def _codes(self, row: GrantedPermission) -> tuple[str, ...]:
        """Those of the permission that this client may use."""
        allowed = self.caller.login.client.allowed_permissions
        codes = sorted(code.pk for code in row.codes.all())
        return tuple(code for code in codes if not allowed or code in allowed)

    def _as_json(self, row: GrantedPermission, codes: tuple[str, ...]) -> dict[str, Any]:
        return {
            "taxpayer": str(row.taxpayer.identifier),
            "permissions": codes,
            "state": row.state(self.caller.at),
            "valid_from": rfc3339(row.valid_from),
            "valid_until": rfc3339_or_none(row.valid_until),
        }


def usable_permissions(
    system_user_id: int, taxpayer: TaxpayerId | None, at: datetime
) -> "QuerySet[GrantedPermission]":
    """Permissions for the intermediary of this client, in force or to come, of one taxpayer or all.

    Subqueries and a second query: with joins PostgreSQL read all taxpayers up to the page.
    """
    intermediary = Intermediary.objects.filter(taxpayer__system_users=system_user_id).values("pk")
    rows = GrantedPermission.objects.filter(
        Q(valid_until=None) | Q(valid_until__gte=at), intermediary=intermediary[:1], revoked_at=None
    )
    if taxpayer is not None:
        named = Taxpayer.objects.filter(tin=taxpayer.tin, rob=taxpayer.rob).values("pk")
        rows = rows.filter(taxpayer=named[:1])
    return rows.prefetch_related("taxpayer", "codes")


def _limit(given: Mapping[str, str]) -> int:
    text = given.get("limit", str(USUAL_LIMIT))
    if not _NUMBER.fullmatch(text) or int(text) > MOST:
        raise ParseError(f"The parameter limit must be a number from 1 to {MOST}.")
    return int(text)


permissions = PermissionsView.as_view()
