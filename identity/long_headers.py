"""Headers of pages that are too long to mean anything are as if they were absent. Pure.

Django reads each of these with expressions and loops that take milliseconds for kilobytes, some in
quadratic time, and every stranger can send them. None changes what a page does: with a wrong
Content-Type a body is refused, and without If-Match a change is. No header is here that says where
a request comes from, or that it must not be done twice.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Environ = dict[str, Any]
WsgiApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_NEGOTIATING = ("ACCEPT", "ACCEPT_LANGUAGE", "ACCEPT_ENCODING", "ACCEPT_CHARSET")
_CONDITIONAL = ("IF_MATCH", "IF_NONE_MATCH", "IF_MODIFIED_SINCE", "IF_UNMODIFIED_SINCE", "IF_RANGE")
_LONGEST: Mapping[str, int] = {
    "CONTENT_TYPE": 200,
    "HTTP_COOKIE": 4096,  # as much as a browser stores of one (RFC 6265 section 6.1)
    **{f"HTTP_{name}": 500 for name in (*_NEGOTIATING, *_CONDITIONAL, "RANGE")},
}


def without_long_headers(application: WsgiApplication) -> WsgiApplication:
    """The same application, which never sees them."""

    def call(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        for name, longest in _LONGEST.items():
            if len(environ.get(name, "")) > longest:
                del environ[name]
        return application(environ, start_response)

    return call
