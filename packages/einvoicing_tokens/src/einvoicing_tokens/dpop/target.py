"""The address of a request, in the form in which two are compared (RFC 3986 section 6.2). Pure."""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_NEEDS_NO_ESCAPE = re.compile("[A-Za-z0-9._~-]")


def comparable(address: str) -> tuple[str, str, int, str] | None:
    """Scheme, host, port and path; None for what is no address of HTTP. Query and fragment go."""
    try:
        parts = urlsplit(address)
        port = parts.port
        path = _in_one_form(urljoin("/", _ESCAPE.sub(_shortest, parts.path)) or "/")
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path


def _in_one_form(path: str) -> str:
    # Frameworks decode a path before an API sees it, so whether ":" was escaped is unknown.
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))


def _shortest(escape: "re.Match[str]") -> str:
    letter = chr(int(escape[0][1:], 16))
    return letter if _NEEDS_NO_ESCAPE.fullmatch(letter) else escape[0].upper()
