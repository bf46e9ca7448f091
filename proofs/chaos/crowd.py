"""Many connections at once, each with one request: sent and read in one quick loop."""

import selectors
import socket
import time
from dataclasses import dataclass, field

from proofs.chaos.answers import Answer, read_answer, without_answer
from tests.servers.wire import answers_in

_ROUND_SECONDS = 0.2


@dataclass
class _Client:
    request: bytes
    connection: socket.socket
    sent_at: float = 0.0
    answered_at: float = 0.0
    received: bytearray = field(default_factory=bytearray)


def rush(port: int, requests: list[bytes], caller: str, at_most: float) -> list[Answer]:
    """Opens a connection for each request at the same moment; the answers, or that there is none.

    A request must ask the server to close the connection.
    """
    selector = selectors.DefaultSelector()
    clients = [_connect(port, request, selector) for request in requests]
    gives_up_at = time.monotonic() + at_most
    while selector.get_map() and time.monotonic() < gives_up_at:
        for key, _events in selector.select(_ROUND_SECONDS):
            _go_on(key.data, selector)
    for client in clients:
        client.connection.close()
    selector.close()
    return [_answer(client, caller) for client in clients]


def _connect(port: int, request: bytes, selector: selectors.BaseSelector) -> _Client:
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", port))
    client = _Client(request, connection)
    selector.register(connection, selectors.EVENT_WRITE, client)
    return client


def _go_on(client: _Client, selector: selectors.BaseSelector) -> None:
    try:
        if not client.sent_at:
            client.sent_at = client.answered_at = time.monotonic()
            client.connection.sendall(client.request)
            selector.modify(client.connection, selectors.EVENT_READ, client)
        elif part := client.connection.recv(65536):
            client.received += part
            client.answered_at = time.monotonic()
        else:
            selector.unregister(client.connection)
    except OSError:
        client.answered_at = time.monotonic()
        selector.unregister(client.connection)


def _answer(client: _Client, caller: str) -> Answer:
    times = (client.sent_at, client.answered_at)
    found = answers_in(bytes(client.received))
    if not found:
        return without_answer(caller, times, EOFError())
    return read_answer(caller, times, found[0].status, found[0].headers, found[0].body)
