"""A name server on the loopback interface that knows every name: each of them is 127.0.0.1."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_TYPE_A = 1
_ADDRESS = socket.inet_aton("127.0.0.1")


@contextmanager
def name_server() -> Iterator[str]:
    """Its address, as nginx writes it, while the block runs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=[server], daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.sendto(b"", server.getsockname())  # ends it
        thread.join(5)


def _serve(server: socket.socket) -> None:
    while True:
        query, sender = server.recvfrom(512)
        if not query:
            return
        server.sendto(_answer(query), sender)


def _answer(query: bytes) -> bytes:
    """RFC 1035, section 4: the question again, and an address if one was asked for."""
    end = query.index(b"\0", 12) + 5
    (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
    answers = int(kind == _TYPE_A)
    header = query[:2] + struct.pack("!5H", 0x8180, 1, answers, 0, 0)
    record = struct.pack("!HHHIH", 0xC00C, _TYPE_A, 1, 5, len(_ADDRESS)) + _ADDRESS
    return header + query[12:end] + record * answers
