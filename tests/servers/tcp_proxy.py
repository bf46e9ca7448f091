"""A way to a server that tests slow down, cut, strand and redirect, as a network would."""

import asyncio
import contextlib
import ctypes
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any

from tests.servers.processes import free_port

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # asm-generic/socket.h
_DROP_EVERYTHING = struct.pack("HBBI", 0x06, 0, 0, 0)  # classic BPF: accept no byte of the packet
_CALL_SECONDS = 10.0


class TcpProxy:
    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.delay_seconds = 0.0  # of everything, in each direction
        self.loses_next_answer = False  # the server's next bytes, and the connection with them
        self._target = target
        self._is_reachable = asyncio.Event()
        self._is_reachable.set()
        self._clients: set[Any] = set()  # their sockets
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stranded: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(
            asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        )

    def vanish(self) -> None:
        """As when the server's machine loses its network: packets are dropped, none is confirmed.

        The kernel drops what clients send, so that their own timeouts for TCP are tested too.
        """
        self._call(self._vanish())

    def come_back(self) -> None:
        """The end of `vanish`: what was sent meanwhile arrives after all."""
        self._call(self._come_back())

    def redirect(self, target: int) -> None:
        """New connections lead to another port; open ones stay where they are."""
        self._target = target

    def strand(self) -> None:
        """Open connections stay open, and nothing is ever forwarded on them again."""
        self._call(self._strand())

    def stop(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_CALL_SECONDS)

    async def _vanish(self) -> None:
        self._is_reachable.clear()
        for sock in (*self._server.sockets, *self._clients):
            _drop_everything(sock)

    async def _come_back(self) -> None:
        for sock in (*self._server.sockets, *self._clients):
            with contextlib.suppress(OSError):  # closed, or accepted since
                sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        self._is_reachable.set()

    async def _strand(self) -> None:
        self._stranded |= self._tasks

    async def _close(self) -> None:
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        sock = writer.get_extra_info("socket")
        self._tasks.add(task)
        self._clients.add(sock)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._connect(task, reader, writer)
        finally:
            writer.transport.abort()
            self._clients.discard(sock)
            self._tasks.discard(task)
            self._stranded.discard(task)

    async def _connect(
        self, task: asyncio.Task[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        both = [
            asyncio.create_task(self._forward(task, reader, to_server, is_answer=False)),
            asyncio.create_task(self._forward(task, from_server, writer, is_answer=True)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            to_server.transport.abort()

    async def _forward(
        self,
        task: asyncio.Task[Any],
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        is_answer: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(2**16):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                await self._is_reachable.wait()
                if task in self._stranded:
                    await asyncio.Event().wait()  # for ever
                if is_answer and self.loses_next_answer:
                    self.loses_next_answer = False
                    return
                target.write(data)
                await target.drain()


def _drop_everything(sock: Any) -> None:
    buffer = ctypes.create_string_buffer(_DROP_EVERYTHING)
    program = struct.pack("HL", 1, ctypes.addressof(buffer))
    with contextlib.suppress(OSError):  # closed just now
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
