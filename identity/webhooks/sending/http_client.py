"""Sends one message: to an address that was checked, with a deadline for everything.

Of the answer only the status and the headers are read, so no receiver can send more than those.
"""

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from identity.webhooks.destination import Destination, NotAllowed, is_allowed, read_url
from identity.webhooks.sending.attempts import Outcome

SECONDS = 20.0  # from the first connection to the last header of the answer
_CONNECT_SECONDS = 5.0
_MOST_ADDRESSES = 4  # of a name that are tried
_tls = cache(ssl.create_default_context)  # trusts the authorities of this machine


def post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    allowed_networks: Collection[str],
    seconds: float = SECONDS,
) -> Outcome:
    """What the receiver has answered, or why there is no answer. Follows no redirect."""
    try:
        destination = read_url(url, allowed_networks)
        with _connected(destination, allowed_networks) as raw, _deadline(raw, seconds):
            return _exchange(destination, raw, headers, body)
    except (OSError, http.client.HTTPException, ValueError) as fault:
        return Outcome(fault=_describe(fault))


@contextlib.contextmanager
def _connected(
    destination: Destination, allowed_networks: Collection[str]
) -> Iterator[socket.socket]:
    """A connection to the first address of the host that may be used and answers."""
    found = socket.getaddrinfo(destination.host, destination.port, type=socket.SOCK_STREAM)
    usable = [
        (family, place)
        for family, _type, _protocol, _name, place in found
        if is_allowed(
            str(place[0]), is_https=destination.is_https, allowed_networks=allowed_networks
        )
    ]
    if not usable:
        raise NotAllowed("the address of the host is not public")
    failure: OSError = OSError("no address")
    for family, place in usable[:_MOST_ADDRESSES]:
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.settimeout(_CONNECT_SECONDS)
            raw.connect(place)
        except OSError as fault:
            raw.close()
            failure = fault
        else:
            with raw:
                yield raw
            return
    raise failure


@contextlib.contextmanager
def _deadline(raw: socket.socket, seconds: float) -> Iterator[None]:
    """Ends the connection after so many seconds, however slowly something still comes.

    What fails after that raises TimeoutError.
    """
    passed, line = threading.Event(), raw.dup()  # TLS takes `raw` over

    def end() -> None:
        passed.set()
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        raw.settimeout(seconds)
        yield
    except (OSError, http.client.HTTPException, ValueError):
        if passed.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
        timer.join()
        line.close()


def _exchange(
    destination: Destination, raw: socket.socket, headers: Mapping[str, str], body: bytes
) -> Outcome:
    host, port = destination.host, destination.port
    if destination.is_https:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port)
        line: socket.socket = _tls().wrap_socket(raw, server_hostname=host)
    else:
        connection, line = http.client.HTTPConnection(host, port), raw
    with line:
        connection.sock = line
        connection.request("POST", destination.target, body, dict(headers))
        answer = connection.getresponse()
        try:
            return Outcome(answer.status, retry_after=answer.headers.get("Retry-After", "")[:64])
        finally:
            answer.close()


def _describe(fault: Exception) -> str:
    """A few words for operators; nothing that a receiver has sent."""
    match fault:
        case NotAllowed():
            return f"not allowed: {fault}"
        case socket.gaierror():
            return "the host has no address"
        case ssl.SSLError():
            return f"TLS failed: {fault.reason or 'no TLS'}"[:64]
        case TimeoutError():
            return "no answer in time"
        case ConnectionRefusedError():
            return "connection refused"
        case OSError():
            return "connection lost"
        case _:
            return "the answer is no HTTP"
