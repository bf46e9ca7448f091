"""Refusals of the endpoints that authenticate their caller as the RFC says: 401, not 400."""

from datetime import datetime
from uuid import UUID

from taxpayers.rules import Refused
from tokens.answers.response import Answer, refused_answer
from tokens.refusals.table import REFUSALS

_INVALID_CLIENT = "invalid_client"
_CHALLENGE = 'Basic realm="identity", charset="UTF-8"'


def refused_by(reference: UUID, at: datetime, refused: Refused, caller: str) -> Answer:
    """As at the login; a caller that is not authenticated gets 401 with a challenge.

    RFC 6749 section 5.2, RFC 7662 section 2.3. `caller` is addressed by its description.
    """
    answer = refused_answer(reference, at, refused, caller=caller)
    if REFUSALS[refused.reason].error != _INVALID_CLIENT:
        return answer
    headers = answer.headers | {"WWW-Authenticate": _CHALLENGE}
    return Answer(401, answer.reason, headers, answer.body)
