"""The address of a request, in the form in which two are compared (RFC 3986 section 6.2). Pure."""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

_PORTS = {"http": 80, "https": 443}
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)  # in a segment that names a folder


def comparable(address: str) -> tuple[str, str, int, str] | None:
    """Scheme, host, port and path; None for what is no address of HTTP. Query and fragment go."""
    try:
        parts = urlsplit(address)
        port = parts.port
        path = _in_one_form(urljoin("/", _ESCAPED_DOT.sub(".", parts.path)) or "/")
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path


def _in_one_form(path: str) -> str:
    # Frameworks decode a path before an API sees it, so whether ":" was escaped is unknown.
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))
