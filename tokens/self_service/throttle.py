"""A limit for each access token on `/api/v1/` in one process, without a thread or a query."""

import json
import math

from django.http import HttpResponse
from uuid_utils.compat import uuid7

from tokens.http import error_body
from tokens.metrics import throttled_calls
from tokens.rate_limits.call_limit import CallLimit

BURST, SECONDS = 120, 0.25  # who pages through a list stays below it
_MOST_TOKENS = 10_000
_TOO_MANY = error_body(
    "invalid_request",
    "Too many requests with this access token. Wait as long as Retry-After says, and then send at"
    " most four a second.",
)
_BODY = json.dumps(_TOO_MANY)  # once: what is refused must cost little

_calls = CallLimit(_MOST_TOKENS)


def too_many_calls(authorization: str, now: float) -> HttpResponse | None:
    """429, if too many calls came with the token of this header; `now` in seconds of any clock."""
    # Without the signature, which can be written in several ways. A text that is no token of ours
    # is counted as well, and refused by the address if it gets there.
    token = authorization.rpartition(".")[0].rpartition(" ")[2]
    if not token:
        return None
    wait = _calls.seconds_to_wait(hash(token), now, burst=BURST, seconds=SECONDS)
    if not wait:
        return None
    throttled_calls.inc()
    headers = {
        "Cache-Control": "no-store",
        "Retry-After": str(math.ceil(wait)),
        "correlationId": str(uuid7()),
    }
    return HttpResponse(_BODY, "application/json", 429, headers=headers)
