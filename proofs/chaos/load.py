"""A steady load through the proxy: each caller is a thread with one connection."""

import asyncio
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException

from proofs.chaos.answers import Answer, no_answer, read_answer
from proofs.chaos.callers import Caller, Population
from tests.servers.wire import WireAnswer, answers_in
from tests.support.erp import FORM, PATH

# Longer than any answer may take: what comes later counts as silence.
SILENCE_SECONDS = 20.0

Connect = Callable[[Caller], HTTPConnection]


def log_in(caller: Caller, connection: HTTPConnection, headers: dict[str, str]) -> Answer:
    sent_at = time.monotonic()
    named = {"onbehalfof": caller.on_behalf_of} if caller.on_behalf_of else {}
    try:
        connection.request("POST", PATH, caller.body, {**named, "Content-Type": FORM, **headers})
        response = connection.getresponse()
        body = response.read()
    except (OSError, HTTPException) as error:
        connection.close()
        return Answer(caller.name, sent_at, time.monotonic(), fault=no_answer(error))
    given = {name.lower(): value for name, value in response.getheaders()}
    answer = WireAnswer(response.status, response.reason, given, body)
    return read_answer(caller.name, (sent_at, time.monotonic()), answer)


class Load:
    """Runs between `begin` and `end`; `answers` grows meanwhile."""

    def __init__(self, population: Population, connect: Connect) -> None:
        self.answers: list[Answer] = []
        self.honest = population.honest
        self._is_over = threading.Event()
        self._connect = connect
        self._threads = [
            threading.Thread(target=self._send, args=(one,)) for one in population.callers
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(SILENCE_SECONDS + 5)

    def _send(self, caller: Caller) -> None:
        connection = self._connect(caller)
        while not self._is_over.is_set():
            answer = log_in(caller, connection, {})
            self.answers.append(answer)
            self._is_over.wait(max(0.0, caller.pause_seconds - answer.seconds))
        connection.close()

    def wait_until_steady(self, seconds: float, at_most: float) -> None:
        """Until every honest caller has got tokens, and nothing else, for so many seconds."""
        began = time.monotonic()
        while (now := time.monotonic()) < began + at_most:
            if now > began + seconds and self._is_steady_since(now - seconds):
                return
            time.sleep(0.1)

    def _is_steady_since(self, since: float) -> bool:
        seen = tuple(self.answers)
        latest = [a for a in seen if a.answered_at >= since and a.caller in self.honest]
        return {a.caller for a in latest} == self.honest and all(a.token for a in latest)


async def rush(port: int, requests: list[bytes], caller: str, at_most: float) -> list[Answer]:
    """The answers to requests that are sent at the same moment; each closes its connection."""
    return await asyncio.gather(*(_send(port, one, caller, at_most) for one in requests))


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
        return Answer(caller, sent_at, time.monotonic(), fault=no_answer(error))
