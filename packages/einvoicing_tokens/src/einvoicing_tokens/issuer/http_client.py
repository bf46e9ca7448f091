"""Short HTTP requests to the identity service, bounded in time and size. No redirects."""

import time
from collections.abc import Mapping
from urllib.parse import urlencode

import urllib3

from einvoicing_tokens.errors import unavailable

# The service answers within 2 seconds, even if only with a 503.
TIMEOUT_SECONDS = 3.0
MAX_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 65_536


class HttpClient:
    """Connections that threads share. Give a pool of yours to go through a proxy, or for a private
    certificate authority.
    """

    def __init__(self, pool: urllib3.PoolManager | None = None) -> None:
        self._pool = pool or urllib3.PoolManager(maxsize=4)

    def get(self, url: str, accept: str) -> bytes:
        """The body of a 200. Raises Unavailable for any other answer, and for none."""
        status, body = self._answer("GET", url, {"Accept": accept})
        if status != 200:
            raise unavailable(f"{url} answered {status}")
        return body

    def reconnect(self) -> None:
        """The next request goes over a new connection, perhaps to another node of the service."""
        self._pool.clear()

    def post_form(
        self, url: str, form: Mapping[str, str], *, credentials: tuple[str, str]
    ) -> tuple[int, bytes]:
        """Status and body of the answer, whatever it is. Raises Unavailable if there is none."""
        headers = {
            **urllib3.make_headers(basic_auth=":".join(credentials)),
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self._answer("POST", url, headers, urlencode(form))

    def _answer(
        self, method: str, url: str, headers: Mapping[str, str], body: str | None = None
    ) -> tuple[int, bytes]:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers=headers,
                redirect=False,
                retries=False,
                timeout=urllib3.Timeout(total=TIMEOUT_SECONDS),
                preload_content=False,
                decode_content=False,  # nothing is compressed, so nothing can unpack to more
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unavailable(f"{url} did not answer") from error
        return response.status, _read(url, response, deadline)


def _read(url: str, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    body = bytearray()
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_BYTES or time.monotonic() > deadline:
                raise unavailable(f"the answer of {url} is too large or too slow")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise unavailable(f"{url} did not answer in full") from error
    else:
        response.release_conn()
        return bytes(body)
    finally:
        response.close()
