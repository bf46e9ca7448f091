"""The form body of a login, from bytes to parameters (contract 1; RFC 6749 section 3.2). Pure."""

from taxpayers.value import Hidden, Value
from tokens.form_encoding import malformed, read_pairs
from tokens.request.on_behalf_of import HEADER

MAX_BODY_BYTES = 16 * 1024
_LONGEST_CONTENT_TYPE, _LONGEST_QUERY = 200, 2048
_MEDIA_TYPE = "application/x-www-form-urlencoded"
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"}
_CREDENTIALS = frozenset({"client_id", "client_secret", "client_assertion"})
# A refusal names these only: what else a client sends as a name could be its secret.
_KNOWN_NAMES = frozenset(
    {*_CREDENTIALS, "client_assertion_type", "grant_type", "scope", "token", HEADER}
)
_GZIP = b"\x1f\x8b"  # RFC 1952 section 2.3.1


class Form(Value):
    """The parameters of the body that have a value, and the names of all that were sent."""

    values: Hidden[dict[str, str]]
    names: Hidden[frozenset[str]] = frozenset()  # also without a value, or in the query string


def read_form(body: bytes, content_type: str, query_string: str) -> Form:
    """The parameters of a login. Raises Refused with the first fault."""
    _check_lengths(body, content_type, query_string)
    media_type, _, parameters = content_type.partition(";")
    if media_type.strip().lower() != _MEDIA_TYPE:
        raise malformed(f"the body must be a form with the Content-Type {_MEDIA_TYPE}")
    query = read_pairs(query_string, "utf-8", "query string")
    if any(name in _CREDENTIALS for name, _ in query):
        raise malformed(
            "client_id and client_secret belong in the body: in the query string they end up in"
            " logs. Treat this secret as compromised and have it replaced"
        )
    charset = _charset(parameters)
    pairs = read_pairs(_text(body), charset, "body")
    values: dict[str, str] = {}
    for name, value in pairs:
        if not value:
            continue  # as if it were left out (RFC 6749 section 3.2), so it repeats nothing
        if name in values:
            parameter = f"the parameter {name}" if name in _KNOWN_NAMES else "a parameter"
            raise malformed(f"{parameter} is sent more than once")
        values[name] = value
    return Form(values, frozenset(dict([*pairs, *query])))


def _check_lengths(body: bytes, content_type: str, query_string: str) -> None:
    """Before anything of them is read: anyone can send them."""
    if len(content_type) > _LONGEST_CONTENT_TYPE:
        raise malformed(f"the Content-Type is longer than {_LONGEST_CONTENT_TYPE} characters")
    if len(body) > MAX_BODY_BYTES:
        raise malformed(f"the body is longer than {MAX_BODY_BYTES} bytes")
    if len(query_string) > _LONGEST_QUERY:
        raise malformed(f"the query string is longer than {_LONGEST_QUERY} characters")


def _text(body: bytes) -> str:
    try:
        return body.decode("ascii")
    except UnicodeDecodeError:
        if body.startswith(_GZIP):
            raise malformed(
                "the body is compressed with gzip: send it as it is, without Content-Encoding"
            ) from None
        raise malformed("the body has bytes that are not percent-encoded") from None


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
            if charset not in _CHARSETS:
                raise malformed("the charset of the Content-Type must be UTF-8")
            return charset
    return "utf-8"
