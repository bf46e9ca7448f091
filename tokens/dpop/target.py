"""The address that a proof is made for, `htu` (RFC 9449 4.3, RFC 3986 section 6.2). Pure."""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


def is_same_target(htu: str, address: str) -> bool:
    """Whether both name the same resource; query and fragment do not count.

    What is no address of HTTP is the same as nothing.
    """
    normalized = _normalized(htu)
    return normalized is not None and normalized == _normalized(address)


def _normalized(address: str) -> tuple[str, str, int, str] | None:
    try:
        parts = urlsplit(address)
        port = parts.port
        path = _in_one_form(urljoin("/", _ESCAPED.sub(_unescaped, parts.path)) or "/")
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname  # which is in lower case
    if scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    return scheme, host, port or _DEFAULT_PORTS[scheme], path


def _in_one_form(path: str) -> str:
    # Django decodes a path before a view sees it, so it is unknown whether ":" was escaped.
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))


def _unescaped(escaped: re.Match[str]) -> str:
    # RFC 3986 section 6.2.2.2: a letter that needs no escape is the same without it.
    letter = chr(int(escaped[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else escaped[0].upper()
