"""Raw bytes to a server and what comes back, for requests that no HTTP library would send."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class WireAnswer:
    """One answer as it stood on the wire."""

    status: int
    reason: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextlib.contextmanager
def connected(url: str, timeout: float = 30) -> Iterator[socket.socket]:
    """A connection to the server at that address."""
    host, port = urlsplit(url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        yield connection


def send_all(url: str, *parts: bytes, end: bool = False) -> list[WireAnswer]:
    """Every answer to these bytes, until the server closes."""
    with connected(url) as connection:
        for part in parts:
            connection.sendall(part)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return answers_in(read_to_end(connection))


def read_to_end(connection: socket.socket) -> bytes:
    """What arrives until the server closes."""
    received = bytearray()
    while chunk := connection.recv(65536):
        received += chunk
    return bytes(received)


def read_answer(connection: socket.socket) -> WireAnswer:
    """The next answer; the connection stays open. Raises EOFError if the server closes instead."""
    received = bytearray()
    while not (answers := answers_in(bytes(received))):
        chunk = connection.recv(65536)
        if not chunk:
            raise EOFError(f"closed after {bytes(received)!r}")
        received += chunk
    return answers[0]


def answers_in(received: bytes) -> list[WireAnswer]:
    """The whole answers with a Content-Length that these bytes contain."""
    answers = []
    while (end := received.find(b"\r\n\r\n")) >= 0:
        status_line, *lines = received[:end].decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) ?(.*)", status_line)
        assert match, received[:200]
        status = int(match[1])
        headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines)}
        length = 0 if status == 100 else int(headers["content-length"])
        body = received[end + 4 : end + 4 + length]
        if len(body) < length:
            break
        answers.append(WireAnswer(status, match[2], headers, body))
        received = received[end + 4 + length :]
    return answers
