"""What uWSGI leaves to us: chunked bodies, answers to HEAD, and whose word on HTTPS counts.

RFC 9112 sections 6 and 7, RFC 9110 section 9.3.2.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any

from tokens.endpoint.proxies import BODY_FAULT

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# Read to its end up to this size, so that a refusal is not lost to a reset connection.
MAX_CHUNKED_BYTES = 1024 * 1024


def whole_requests_only(application: App) -> App:
    """Give the application a body with a length and a scheme that no header has changed.

    A body that cannot be read is empty, and `BODY_FAULT` says why: the view refuses it in its own
    words. The connection is closed by the server in every one of these cases.
    """

    def checked(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        # uWSGI says "https" to anybody who sends X-Forwarded-Proto; which proxies are believed is
        # for tokens/endpoint/proxies.py to say. TLS never ends in uWSGI itself.
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

    return checked


def no_body_for_head(application: App) -> App:
    """Answer HEAD with the headers alone.

    uWSGI would send the body as well, and on a kept connection it would pass for the next answer.
    """

    def answered(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = application(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return answer
        if hasattr(answer, "close"):
            answer.close()
        return ()

    return answered


def _chunked_body() -> tuple[bytes, str]:
    import uwsgi  # exists only inside the server

    body = bytearray()
    try:
        while chunk := uwsgi.chunked_read():
            body += chunk
            if len(body) > MAX_CHUNKED_BYTES:
                return b"", "it is too long"
    except OSError:
        return b"", "its chunks are malformed or incomplete"
    return bytes(body), ""
