"""The header `onbehalfof`, and what a client sends instead of it by mistake (contract 1). Pure.

A client that means to act for another taxpayer never silently gets a token for itself.
"""

from collections.abc import Iterable, Set

from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId
from taxpayers.rules import Refused
from tokens.refusals.table import ProtocolReason

HEADER = "onbehalfof"
HEADER_IN_META = "HTTP_ONBEHALFOF"  # as CGI names it (RFC 3875 section 4.1.18)

# Names that a login is expected to have, so there is no need to look at their letters.
_EXPECTED_IN_META = frozenset(
    {
        *("REQUEST_METHOD", "QUERY_STRING", "REMOTE_ADDR", "wsgi.url_scheme", "CONTENT_TYPE"),
        *("HTTP_AUTHORIZATION", "HTTP_USER_AGENT", "HTTP_ACCEPT", "HTTP_X_FORWARDED_FOR"),
        *("HTTP_X_FORWARDED_PROTO", HEADER_IN_META),
    }
)
_EXPECTED_PARAMETERS = frozenset({"grant_type", "client_id", "client_secret", "scope"})

_LETTERS = b"onbehalf"  # without the rest: some clients send only these
_NOT_LETTERS = bytes(set(range(256)) - set(b"abcdefghijklmnopqrstuvwxyz"))


def spells_on_behalf_of(name: bytes) -> bool:
    """Whether a name has the letters of the header, whatever stands around and between them.

    True of the header itself, and of `On-Behalf-Of`, `X_OnBehalfOf`, `onbehalf` and `on behalf of`.
    """
    return _LETTERS in name.lower().translate(None, _NOT_LETTERS)


def has_misspelled_header(names_in_meta: Iterable[str]) -> bool:
    """Whether one of these headers, named as in CGI, was meant as the header without being it."""
    others = set(names_in_meta) - _EXPECTED_IN_META
    return any(spells_on_behalf_of(name.encode(errors="replace")) for name in others)


def read_on_behalf_of(
    header: str | None,
    notation: Notation,
    *,
    is_misspelled: bool,
    parameters: Set[str],
) -> TaxpayerId | None:
    """The taxpayer for which the client means to act; None if it means itself.

    `parameters` are the names of those in the body and the query string, where it has no place,
    even without a value. Raises Refused unless only the header names one taxpayer.
    """
    if is_misspelled:
        raise _malformed("it is sent under another name")
    if any(spells_on_behalf_of(name.encode()) for name in parameters - _EXPECTED_PARAMETERS):
        raise _malformed("it is sent as a parameter, not as a header")
    if header is None:
        return None
    if not header.strip(" \t"):
        raise _malformed("it is empty")
    if "," in header:
        raise _malformed("it is sent twice or holds a list")
    try:
        return notation.parse(header)
    except MalformedIdentifier as fault:
        raise _malformed(str(fault)) from None


def _malformed(detail: str) -> Refused:
    return Refused(ProtocolReason.MALFORMED_ON_BEHALF_OF, detail=detail)
