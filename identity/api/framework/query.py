"""The parameters of a list: filters, cursor and limit. One that is not known is refused."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from identity.api.framework.fields import Body, Text
from identity.api.framework.problem_answers import field_errors
from identity.api.framework.problems import FieldError, Problem
from taxpayers.rules import Refused
from tokens.form_encoding import read_pairs
from tokens.resource_server.pagination import MOST, USUAL_LIMIT


class Paged(Body):
    """What every list takes."""

    limit = serializers.IntegerField(
        min_value=1,
        max_value=MOST,
        default=USUAL_LIMIT,
        help_text=f"How many records a page has at most: 1 to {MOST}.",
    )


class Filters(Paged):
    """What a list with a cursor takes; a subclass adds what it can be filtered by."""

    cursor = Text(
        required=False,
        allow_blank=True,
        max_length=2_000,
        help_text="The next_cursor of the page before; left out or empty: the first page.",
    )


class ByName(Filters):
    name = Text(
        required=False,
        source="name__has_words",
        help_text="Those whose name has each of these words, or parts.",
    )


def read_query(request: Request, filters: type[Paged]) -> dict[str, Any]:
    """The values of the query string. Raises Problem, which names every parameter at fault."""
    try:
        pairs = read_pairs(request.META.get("QUERY_STRING", ""), "utf-8", "query string")
    except Refused as refused:
        raise Problem("malformed_request", f"The request is malformed: {refused.detail}.") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            known = name if name in filters().fields else ""
            raise _bad([FieldError("Send it once.", "repeated", parameter=known)])
        values[name] = value
    serializer = filters(data=values)
    if not serializer.is_valid():
        raise _bad(
            [
                FieldError(error.detail, error.code, parameter=error.pointer.removeprefix("#/"))
                for error in field_errors(serializer.errors)
            ]
        )
    return dict(serializer.validated_data)


def bad_place(parameter: str, detail: str) -> Problem:
    """For a text that leads to no place of this list."""
    return _bad([FieldError(detail, "invalid", parameter=parameter)])


def _bad(errors: list[FieldError]) -> Problem:
    return Problem("malformed_request", "Correct the parameters listed in errors.", errors)
