"""Many connections at once, each with one request."""

import asyncio
import time

from proofs.chaos.answers import Answer, read_answer, without_answer
from tests.servers.wire import answers_in


def rush(port: int, requests: list[bytes], caller: str, at_most: float) -> list[Answer]:
    """Opens a connection for each request at the same moment; the answers, or that there is none.

    A request must ask the server to close the connection.
    """

    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*(_send(port, one, caller, at_most) for one in requests))

    return asyncio.run(all_at_once())


async def _send(port: int, request: bytes, caller: str, at_most: float) -> Answer:
    sent_at = time.monotonic()
    try:
        async with asyncio.timeout(at_most):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            sent_at = time.monotonic()
            writer.write(request)
            received = await reader.read()
        times = (sent_at, time.monotonic())
        writer.close()
        return read_answer(caller, times, answers_in(received)[0])
    except (OSError, IndexError) as error:  # a timeout is one, too
        return without_answer(caller, (sent_at, time.monotonic()), error)
