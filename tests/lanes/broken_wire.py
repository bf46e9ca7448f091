"""A wire to the database that can lose the answer to a statement that was executed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class BrokenWire:
    """Forwards bytes both ways, until it is asked to lose an answer."""

    def __init__(self) -> None:
        self._loses_next = False
        self.lost = 0

    def lose_next_answer(self) -> None:
        """The server's next bytes are dropped, and the connection with them."""
        self._loses_next = True

    @asynccontextmanager
    async def listening(self, host: str, port: str) -> AsyncIterator[int]:
        """The port of this machine from which it leads to the server."""

        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            from_server, to_server = await asyncio.open_connection(host, int(port))
            try:
                await asyncio.gather(
                    self._forward(reader, to_server, is_answer=False),
                    self._forward(from_server, writer, is_answer=True),
                )
            finally:
                to_server.close()
                writer.close()

        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while data := await source.read(2**16):
            if is_answer and self._loses_next:
                self._loses_next = False
                self.lost += 1
                break
            target.write(data)
            await target.drain()
        target.close()
