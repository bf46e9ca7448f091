"""What uWSGI leaves to the application: chunked bodies, answers to HEAD, and the URL scheme.

RFC 9112 sections 6 and 7, RFC 9110 section 9.3.2.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any

from tokens.endpoint.proxies import BODY_FAULT

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# A body up to this size is read to its end: else the connection is reset and the refusal is lost.
MAX_CHUNKED_BYTES = 1024 * 1024


def require_whole_requests(application: App) -> App:
    """Give the application a body of known length, and a scheme that no header has changed.

    A body that cannot be read becomes an empty one, and `BODY_FAULT` says why: the view refuses the
    request. The server closes the connection in all these cases.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        # uWSGI sets "https" for every client that sends X-Forwarded-Proto; which proxies are
        # trusted is decided in tokens/endpoint/proxies.py. uWSGI itself never terminates TLS.
        environ["wsgi.url_scheme"] = "http"
        environ.pop("HTTPS", None)
        length = environ.get("CONTENT_LENGTH") or ""
        coding = environ.get("HTTP_TRANSFER_ENCODING")
        body, fault = None, ""
        if coding is not None:
            if length:
                fault = "it has both a Content-Length and a Transfer-Encoding"
            elif coding.strip().lower() != "chunked":
                fault = "its Transfer-Encoding is not chunked"
            else:
                body, fault = _chunked_body()
        elif length and not (length.isascii() and length.isdigit()):
            fault = "its Content-Length is not a number"
        if body is not None or fault:
            environ["wsgi.input"] = io.BytesIO(body or b"")
            environ["CONTENT_LENGTH"] = str(len(body or b""))
            environ[BODY_FAULT] = fault
        return application(environ, start_response)

    return wrapper


def omit_body_for_head(application: App) -> App:
    """Answer HEAD with the headers only.

    uWSGI would send the body as well, and on a persistent connection a client would read it as the
    next answer.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = application(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return answer
        if hasattr(answer, "close"):
            answer.close()
        return ()

    return wrapper


def _chunked_body() -> tuple[bytes, str]:
    import uwsgi  # this module exists only inside the server

    body = bytearray()
    try:
        while chunk := uwsgi.chunked_read():
            body += chunk
            if len(body) > MAX_CHUNKED_BYTES:
                return b"", "it is too long"
    except OSError:
        return b"", "its chunks are malformed or incomplete"
    return bytes(body), ""
