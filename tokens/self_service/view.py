"""What the addresses have in common where a client sees and ends what is its own."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.models import SystemUser
from taxpayers.moments import end_of_day, parse_moment, start_of_day
from taxpayers.rules import Refused
from taxpayers.validation import taxpayer_notation
from tokens.form_encoding import read_pairs
from tokens.resource_server.answered_view import AnsweredView
from tokens.resource_server.authentication import ANSWER_SECONDS, ActiveTokenAuthentication
from tokens.resource_server.errors import InsufficientScope
from tokens.resource_server.pagination import BadCursor, ListPage, page_of


class SelfServiceView(AnsweredView):
    """Opens to every active token, whatever its scope: what it shows is the client's own."""

    authentication_classes = (ActiveTokenAuthentication,)
    answer_seconds = ANSWER_SECONDS
    logger = logging.getLogger("tokens.self_service")
    log_message = "self service"

    def page(
        self, request: Request, rows: "QuerySet[Any]", order: Sequence[str], limit: int
    ) -> ListPage:
        """The page of `cursor`. Raises ParseError if that is of no page before."""
        cursor = parameters_of(request, "cursor").get("cursor", "")
        try:
            return page_of(rows, order, cursor=cursor, limit=limit, name=type(self).__name__)
        except BadCursor:
            raise ParseError(
                "The parameter cursor must be the next_cursor of the page before. Leave it out to"
                " begin with the first page."
            ) from None


def parameters_of(request: Request, *names: str) -> Mapping[str, str]:
    """Those of these parameters that have a value. Raises ParseError: unreadable, or sent twice."""
    try:
        pairs = read_pairs(request.META.get("QUERY_STRING", ""), "utf-8", "query string")
    except Refused as refused:
        raise ParseError(f"The request is malformed: {refused.detail}.") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if not value or name not in names:
            continue
        if name in values:
            raise ParseError(f"The parameter {name} is sent more than once.")
        values[name] = value
    return values


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

    @property
    def system_user(self) -> SystemUser:
        """The client's row, with its taxpayer."""
        rows = SystemUser.objects.select_related("taxpayer")
        return rows.get(pk=self.caller.login.client.id)


def taxpayer_in(text: str, rule: str) -> TaxpayerId:
    """The taxpayer that a request names. Raises ParseError, which says the rule."""
    try:
        return taxpayer_notation().parse(text)
    except MalformedIdentifier as fault:
        raise ParseError(f"{rule}: {fault}.") from None


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
