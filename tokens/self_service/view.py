"""What the addresses have in common where a client sees and ends what is its own."""

import logging
from collections.abc import Mapping

from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from taxpayers.rules import Refused
from tokens.form_encoding import read_pairs
from tokens.resource_server.active_token import ANSWER_SECONDS, ActiveTokenAuthentication
from tokens.resource_server.answered_view import AnsweredView


class SelfServiceView(AnsweredView):
    """Opens to every active token, whatever its scope: what it shows is the client's own."""

    authentication_classes = (ActiveTokenAuthentication,)
    answer_seconds = ANSWER_SECONDS
    logger = logging.getLogger("tokens.self_service")
    log_message = "self service"


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
