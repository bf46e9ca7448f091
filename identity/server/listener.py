"""Accepts connections, and ends without losing one that was accepted.

All processes listen on one socket. A process that has more connections than another accepts later.
"""

import asyncio
import contextlib
import ctypes
import socket
import struct
from collections.abc import Callable, Iterable

from identity.server.fair_share import ConnectionCounts

# After EMFILE, or whatever else keeps a connection from being accepted.
_PAUSE_SECONDS = 0.1
# How long a process that has more connections than another leaves the next one to that.
_GIVE_WAY_SECONDS = 0.002
# So many are accepted before what the others have sent is read. A crowd must not wait in the queue,
# where it gets no answer, and a login must not wait for a crowd.
_AT_ONCE = 128
# A handshake that had begun when `refuse_handshakes` was called has ended by then.
_HANDSHAKE_SECONDS = 0.2

# Many clients log in again at the full hour: such a burst waits in this queue.
BACKLOG = 2048

# asm-generic/socket.h; the module socket does not name them.
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
# Classic BPF over the TCP header: drop what has the flag SYN and not ACK, let through the rest.
_DROP_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x54, 0, 0, 0x12),  # SYN and ACK of it
    (0x15, 0, 1, 0x02),  # only SYN?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # let through
)


def refuse_handshakes(sockets: Iterable[socket.socket]) -> None:
    """Drop new SYNs, as if the sockets were closed; accept the backlog.

    Closing a socket resets the connections that wait in its queue. With this the queue becomes
    empty first. Without the filter (another system than Linux) a few may be lost.
    """
    code = b"".join(struct.pack("HBBI", *line) for line in _DROP_SYN)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HL", len(_DROP_SYN), ctypes.addressof(buffer))
    for sock in sockets:
        with contextlib.suppress(OSError):
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


class Listener:
    """The accepting side of one listening socket in this process."""

    def __init__(
        self,
        sock: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        counts: ConnectionCounts,
        slot: int,
    ) -> None:
        """`slot`: that of this process in the counts."""
        self._socket = sock
        self._protocol = protocol
        self._counts, self._slot = counts, slot
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[object]] = set()
        sock.setblocking(False)
        self._resume()

    @property
    def is_public(self) -> bool:
        """Whether it is at an address, not a file of this machine."""
        return self._socket.family != socket.AF_UNIX

    @property
    def _is_open(self) -> bool:
        return bool(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))

    async def close_for_now(self) -> bool:
        """Refuse connections, in all processes, once the queue is empty. Whether it was open."""
        if not self._is_open:
            return False
        refuse_handshakes([self._socket])
        await asyncio.sleep(_HANDSHAKE_SECONDS)
        while self._accept():
            pass
        with contextlib.suppress(OSError):  # another process was first
            self._socket.shutdown(socket.SHUT_RD)
        return True

    def open(self) -> bool:
        """The end of `close_for_now`. Whether it was closed."""
        if self._is_open:
            return False
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        self._socket.listen(BACKLOG)
        return True

    def _resume(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket, self._on_client)

    def _pause(self, seconds: float, then: Callable[[], object]) -> None:
        self._loop.remove_reader(self._socket)
        self._loop.call_later(seconds, then)

    def _on_client(self) -> None:
        for _ in range(_AT_ONCE):
            if self._counts.has_more_than_another(self._slot, len(self._beginning)):
                self._pause(_GIVE_WAY_SECONDS, self._accept_after_all)
                return
            if not self._accept():
                return

    def _accept_after_all(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._resume()
        for _ in range(self._counts.next_step(self._slot)):
            if not self._accept():
                return

    def _accept(self) -> bool:
        """Accepts one; whether there was one."""
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:
            self._pause(_PAUSE_SECONDS, self._resume)
            return False
        if self.is_public:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._begin(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)
        return True

    async def _begin(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:
            connection.close()  # the client has gone already

    async def close(self) -> None:
        """Accept what is in the queue, then close."""
        await asyncio.sleep(_HANDSHAKE_SECONDS)
        self._loop.remove_reader(self._socket)
        while self._accept():
            pass
        self._socket.close()
        if self._beginning:
            await asyncio.wait(self._beginning)
