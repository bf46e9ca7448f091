"""The token in the header `Authorization` (RFC 6750 section 2.1, RFC 9449 section 7.1)."""

import re

from einvoicing_tokens.errors import InvalidToken

_TOKEN = re.compile(r"(bearer|dpop) +([A-Za-z0-9._~+/-]+=*) *", re.ASCII | re.IGNORECASE)
_MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."
_MALFORMED = "The header Authorization must be {scheme} and one token. Send it once."


def sent_token(*headers: str | None) -> tuple[str, bool]:
    """The token in the only one of these headers, and whether it is sent as a bound one (DPoP).

    Raises InvalidToken.

    Give every header of that name: where a request has two, a proxy and this API could each read
    another one.
    """
    present = [header for header in headers if header]
    if not present or not present[0].lower().startswith(("bearer", "dpop")):
        raise InvalidToken(_MISSING)
    match = _TOKEN.fullmatch(present[0])
    if match is None or len(present) > 1:
        scheme = "DPoP" if present[0].lower().startswith("dpop") else "Bearer"
        raise InvalidToken(_MALFORMED.format(scheme=scheme))
    return match[2], match[1].lower() == "dpop"
