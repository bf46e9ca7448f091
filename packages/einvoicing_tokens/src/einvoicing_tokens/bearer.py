"""The token in the header `Authorization` (RFC 6750 section 2.1)."""

import re

from einvoicing_tokens.errors import InvalidToken

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.ASCII | re.IGNORECASE)
_MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."
_MALFORMED = "The header Authorization must be Bearer and one token. Send it once."


def bearer_token(*headers: str | None) -> str:
    """The token in the only one of these headers. Raises InvalidToken.

    Give every header of that name: where a request has two, a proxy and this API could each read
    another one.
    """
    present = [header for header in headers if header]
    if not present or not present[0][:6].lower() == "bearer":
        raise InvalidToken(_MISSING)
    match = _BEARER.fullmatch(present[0])
    if match is None or len(present) > 1:
        raise InvalidToken(_MALFORMED)
    return match[1]
