"""A real receiver on a socket, which answers as a test tells it to."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.certificates import self_signed

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
Answer = Callable[[socket.socket], None]


@dataclass(frozen=True)
class Received:
    """One request."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Takes one request after the other of each connection's thread; `answers` in their order."""

    port: int
    answers: list[bytes | Answer] = field(default_factory=list)  # then OK for ever
    received: list[Received] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks?a=1"

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.received]

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                line, _address = listener.accept()
            except OSError:
                return  # closed: the end of the test
            threading.Thread(target=self._one, args=(line,), daemon=True).start()

    def _one(self, line: socket.socket) -> None:
        if self.tls:
            line = self.tls.wrap_socket(line, server_side=True, do_handshake_on_connect=False)
        with line, contextlib.suppress(OSError):
            request = _read(line)
            if request is None:
                return
            answer = self.answers.pop(0) if self.answers else OK
            self.received.append(request)
            self.arrived.set()
            if callable(answer):
                answer(line)
            else:
                line.sendall(answer)


def _read(line: socket.socket) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = line.recv(65_536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (text.split(": ", 1) for text in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += line.recv(65_536)
    return Received(first, headers, body)


@contextlib.contextmanager
def receiving(*answers: bytes | Answer, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that gives these answers first."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = Receiver(listener.getsockname()[1], list(answers), tls=tls)
        thread = threading.Thread(target=receiver.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        thread.join(5)


def status(code: int, *headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {code} X", *headers, "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode()


def write_certificate(folder: Path, name: str = "localhost", days: int = 1) -> Path:
    """The file with the certificate and its key, for a server and for those that trust it."""
    files = self_signed(name, days=days).write(folder, name)
    file = Path(files[0])
    file.write_text("".join(Path(one).read_text() for one in files))
    return file
