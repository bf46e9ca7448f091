"""A real receiver on a socket, which answers as a test tells it to."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import parse_headers
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from tests.servers.certificates import self_signed

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
Answer = Callable[[socket.socket], None]


@dataclass(frozen=True)
class Received:
    line: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingTCPServer):
    """Takes one request of each connection; `answers` in their order, then OK for ever."""

    daemon_threads = True

    def __init__(self, answers: tuple[bytes | Answer, ...], tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hooks?a=1"
        self.answers = list(answers)
        self.received: list[Received] = []
        self.tls = tls

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.received]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side has had enough."""


class _Connection(StreamRequestHandler):
    server: Receiver

    def setup(self) -> None:
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self) -> None:
        with self.request:
            if not (line := self.rfile.readline().decode().rstrip()):
                return
            headers = {name.lower(): value for name, value in parse_headers(self.rfile).items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            answer = self.server.answers.pop(0) if self.server.answers else OK
            self.server.received.append(Received(line, headers, body))
            if callable(answer):
                answer(self.request)
            else:
                self.request.sendall(answer)


@contextlib.contextmanager
def receiving(*answers: bytes | Answer, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    with Receiver(answers, tls) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()


def status(code: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", *headers, "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode()


def write_certificate(folder: Path, name: str = "localhost", days: int = 1) -> Path:
    """The file with the certificate and its key, for a server and for those that trust it."""
    files = self_signed(name, days=days).write(folder, name)
    file = Path(files[0])
    file.write_text("".join(Path(one).read_text() for one in files))
    return file
