"""How a process stops accepting: no accepted client is lost, and no other one gets in."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from identity.server.listener import Listener, refuse_handshakes


class Greeter(asyncio.Protocol):
    """Answers each accepted client with a word."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"accepted")
        transport.close()


@dataclass
class Share:
    """Always leaves the next connection to others, or never."""

    always: bool
    step: int = 1

    def gives_way(self, unpublished: int) -> bool:
        return self.always

    def next_step(self) -> int:
        return self.step


def test_after_the_last_call_no_new_client_gets_into_the_queue() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address) as before:
            refuse_handshakes([listening])
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            before.sendall(b"still here")
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.recv(100) == b"still here"


def test_the_queue_is_emptied_before_the_socket_is_closed() -> None:
    async def close_at_once(listening: socket.socket) -> None:
        # It leaves connections to others, so it is far from the end of the queue when it is closed.
        await Listener(listening, Greeter, Share(always=True)).close()

    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=500))
        address = listening.getsockname()
        clients = [
            stack.enter_context(socket.create_connection(address, timeout=5)) for _ in range(400)
        ]
        with asyncio.Runner() as runner:
            runner.run(close_at_once(listening))
            runner.run(asyncio.sleep(0.2))  # until all of them have been answered
            assert {client.recv(100) for client in clients} == {b"accepted"}


@contextlib.contextmanager
def crowd(size: int) -> Iterator[socket.socket]:
    """A listening socket with so many connections in its queue."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=500))
        for _ in range(size):
            stack.enter_context(socket.create_connection(listening.getsockname(), timeout=5))
        yield listening


async def accepted(listening: socket.socket, share: Share, seconds: float, turns: int) -> int:
    """How many are accepted in this time, and in so many turns of the loop."""
    opened: list[Greeter] = []

    def protocol() -> Greeter:
        opened.append(Greeter())
        return opened[-1]

    listener = Listener(listening, protocol, share)
    await asyncio.sleep(seconds)
    for _ in range(turns):
        await asyncio.sleep(0)
    count = len(opened)
    await listener.close()
    return count


def test_a_crowd_in_the_queue_is_accepted_at_once() -> None:
    with crowd(300) as listening:
        assert asyncio.run(accepted(listening, Share(always=False), 0, turns=20)) == 300
