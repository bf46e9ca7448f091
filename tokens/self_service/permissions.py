"""`GET /api/v1/permissions`: for which taxpayers an intermediary may act, with what, until when."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.facts.validity import is_in_force, may_act_for_others
from taxpayers.facts.values import PermissionFacts
from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.models import GrantedPermission
from taxpayers.validation import taxpayer_notation
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.errors import InsufficientScope
from tokens.resource_server.pagination import MOST, USUAL_LIMIT, BadCursor, ListPage
from tokens.self_service.usable_permissions import usable_permissions
from tokens.self_service.view import SelfServiceView, parameters_of

_NUMBER = re.compile("[1-9][0-9]{0,3}")
_ON_BEHALF = (
    "This token is only for another taxpayer, so it does not show for which others the intermediary"
    " may act. Log in without the header onbehalfof, and use that token."
)


class PermissionsView(SelfServiceView):
    """What taxpayers have granted to the intermediary of this client.

    Only for a token in which the client represents its own taxpayer. A client that is limited gets
    no such token: it sees what it may do for the taxpayer that its token represents.
    """

    http_method_names = ("get", "head")

    def get(self, request: Request) -> Response:
        """One page; nothing while the registration as an intermediary is not active."""
        client, at = self.caller.login.client, self.caller.at
        represented = self.caller.login.represented
        if represented is not None and not client.is_limited:
            raise InsufficientScope(_ON_BEHALF)
        given = parameters_of(request, "taxpayer", "cursor", "limit")
        taxpayer, limit = _taxpayer(given), _limit(given)
        is_of_another = False
        if represented is not None:
            is_of_another = taxpayer not in (None, represented.taxpayer)
            taxpayer = represented.taxpayer
        role = client.intermediary
        page = ListPage([], None)
        if role is not None and may_act_for_others(role, at) and not is_of_another:
            page = _page(client.id, taxpayer, given.get("cursor", ""), limit, at)
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
        facts = PermissionFacts(codes, row.valid_from, row.valid_until, row.revoked_at)
        return {
            "taxpayer": str(row.taxpayer.identifier),
            "permissions": codes,
            "state": "in_force" if is_in_force(facts, self.caller.at) else "not_yet_valid",
            "valid_from": rfc3339(row.valid_from),
            "valid_until": rfc3339_or_none(row.valid_until),
        }


def _taxpayer(given: Mapping[str, str]) -> TaxpayerId | None:
    if "taxpayer" not in given:
        return None
    try:
        return taxpayer_notation().parse(given["taxpayer"])
    except MalformedIdentifier as fault:
        raise ParseError(
            f"The parameter taxpayer must be TIN or TIN:ROB, as in onbehalfof: {fault}."
        ) from None


def _page(
    client: int, taxpayer: TaxpayerId | None, cursor: str, limit: int, at: datetime
) -> ListPage:
    try:
        return usable_permissions(client, taxpayer=taxpayer, cursor=cursor, limit=limit, at=at)
    except BadCursor:
        raise ParseError(
            "The parameter cursor must be the next_cursor of the page before. Leave it out to begin"
            " with the first page."
        ) from None


def _limit(given: Mapping[str, str]) -> int:
    text = given.get("limit", str(USUAL_LIMIT))
    if not _NUMBER.fullmatch(text) or int(text) > MOST:
        raise ParseError(f"The parameter limit must be a number from 1 to {MOST}.")
    return int(text)


permissions = PermissionsView.as_view()
