"""The parameters of a query string, which no client must repeat and no answer does."""

from collections.abc import Mapping

from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.rules import Refused
from tokens.form_encoding import read_pairs


def parameters_of(request: Request, *names: str) -> Mapping[str, str]:
    """Those of these parameters that have a value; unknown ones are ignored.

    Raises ParseError for a query string that cannot be read, or repeats one of them.
    """
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
