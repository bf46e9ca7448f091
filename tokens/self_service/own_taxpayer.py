"""Views that need a token in which the client represents its own taxpayer, with no one between."""

from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.models import SystemUser, Taxpayer
from taxpayers.moments import end_of_day, parse_moment, start_of_day
from taxpayers.services import Author
from tokens.resource_server.errors import InsufficientScope
from tokens.resource_server.pagination import BadCursor, ListPage, page_of
from tokens.self_service.view import SelfServiceView, parameters_of

_ON_BEHALF = "This token is for another taxpayer. Log in without the header onbehalfof."


class OwnTaxpayerView(SelfServiceView):
    """Refuses a token on behalf of another taxpayer: it would show what is not of that one."""

    scope: ClassVar[str] = ""  # that the token needs; empty: none

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if self.scope and self.scope not in self.caller.token.scopes:
            text = f"This needs a token with the scope {self.scope}."
            raise InsufficientScope(text, self.scope)
        if self.caller.token.actor is not None:
            raise InsufficientScope(_ON_BEHALF)

    def page(self, request: Request, rows: "QuerySet[Any]", order: str, limit: int) -> ListPage:
        """The page of `cursor`. Raises ParseError if that is of no page before."""
        cursor = parameters_of(request, "cursor").get("cursor", "")
        try:
            return page_of(rows, (order,), cursor=cursor, limit=limit, name=type(self).__name__)
        except BadCursor:
            raise ParseError(
                "The parameter cursor must be the next_cursor of the page before."
            ) from None

    @property
    def author(self) -> Author:
        """The client, as the history names it."""
        return Author.client(self.caller.token.client_id, self.source_address, self.reference)

    @property
    def system_user(self) -> SystemUser:
        """The client's row, with its taxpayer."""
        rows = SystemUser.objects.select_related("taxpayer")
        return rows.get(pk=self.caller.login.client.id)

    @property
    def taxpayer(self) -> Taxpayer:
        """The client's own taxpayer."""
        return self.system_user.taxpayer


def moment_in(text: str | None, name: str, *, is_end: bool = False) -> datetime | None:
    """A day or a moment that a request names; None for none. Raises ParseError."""
    if text is None:
        return None
    try:
        return parse_moment(text, end_of_day if is_end else start_of_day)
    except (ValueError, OverflowError):
        raise ParseError(
            f"{name} must be a day, for example 2027-12-31, or a moment, for example"
            " 2027-12-31T18:00:00+08:00."
        ) from None
