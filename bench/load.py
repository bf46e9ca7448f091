"""The load generator: raw sockets, requests rendered beforehand, every answer checked."""

import gc
import random
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

_LAST_ANSWERS_SECONDS = 30.0
_SAMPLE_EVERY = 500


class WrongAnswer(Exception):
    """A server gave an answer that it must not give: its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer must be: its status (None: any), and a part of its body."""

    status: int | None
    content: bytes
    others: int = 0  # so many others are right too: a limit admits a few before it refuses
    is_signed: bool = False  # holds a token of this service, whose signature can be verified


@dataclass(slots=True)
class Outcome:
    """What was answered. `latencies` are those of right answers, in seconds."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)  # every 500th answer

    @property
    def answered(self) -> int:
        return len(self.latencies)

    @property
    def per_second(self) -> float:
        return self.answered / self.seconds

    def raise_if_wrong(self, name: str) -> None:
        """Raises WrongAnswer, with the first ones, if one was wrong or there was none at all."""
        if self.wrong or not self.answered:
            shown = b"\n".join(self.wrong[:3]).decode(errors="replace")
            raise WrongAnswer(f"{name}: {len(self.wrong)} wrong answers, such as\n{shown}")


def send(
    port: int,
    requests: Sequence[bytes],
    expected: Expected,
    connections: int,
    seconds: float,
    rate: float | None = None,
) -> Outcome:
    """Sends each request once, for so long at most, then waits for the last answers.

    Without `rate` each connection sends its next request as soon as it is answered. With it so many
    come a second, whatever the server does, and latency counts from the moment a request was due.
    Raises ConnectionError if no process listens.
    """
    generator = _Generator(port, requests, expected)
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    try:
        for _ in range(connections):
            generator.connect()
        generator.send_until(started + seconds, rate)
        generator.receive_last()
    finally:
        gc.enable()
        generator.close()
    outcome = generator.outcome
    outcome.seconds = time.perf_counter() - started
    del outcome.wrong[: expected.others]
    return outcome


class _Connection:
    __slots__ = ("answer", "due", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""
        self.due = 0.0  # the moment of the request under way; 0 if there is none


class _Generator:
    def __init__(self, port: int, requests: Sequence[bytes], expected: Expected) -> None:
        self._port = port
        self._requests = iter(requests)
        self._status = str(expected.status).encode() if expected.status else b""
        self._content = expected.content
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._idle: deque[_Connection] = deque()
        self.outcome = Outcome()

    def connect(self) -> None:
        connection = _Connection(self._port)
        self._connections[connection.socket.fileno()] = connection
        self._poll.register(connection.socket, select.EPOLLIN)
        self._idle.append(connection)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()
        self._poll.close()

    def send_until(self, end: float, rate: float | None) -> None:
        # Requests at random moments (Poisson), as from clients that know nothing of each other.
        moments = random.Random(1)  # noqa: S311 - no secret; the same moments in every run
        due = time.perf_counter()
        while (now := time.perf_counter()) < end:
            due = due if rate else now
            while self._idle and due <= now:
                if (request := next(self._requests, None)) is None:
                    return
                connection = self._idle.popleft()
                connection.due, connection.answer = due, b""
                connection.socket.send(request)
                due += moments.expovariate(rate) if rate else 0.0
            wait = min(due - time.perf_counter(), 0.1) if rate and self._idle else 0.1
            self._receive(wait if wait > 0.001 else 0.0)

    def receive_last(self) -> None:
        end = time.perf_counter() + _LAST_ANSWERS_SECONDS
        while len(self._idle) < len(self._connections) and time.perf_counter() < end:
            self._receive(0.1)
        self.outcome.wrong += [b"no answer"] * (len(self._connections) - len(self._idle))

    def _receive(self, timeout: float) -> None:
        for descriptor, _ in self._poll.poll(timeout):
            connection = self._connections[descriptor]
            try:
                data = connection.socket.recv(65536)
            except ConnectionError:
                data = b""
            connection.answer += data
            if data and not _is_whole(connection.answer):
                continue
            # Where the server closed, that is the end of an answer without a length.
            if connection.due:
                self._check(connection)
                connection.due = 0.0
            else:
                self._idle.remove(connection)
            if data:
                self._idle.append(connection)
            else:
                del self._connections[descriptor]
                connection.socket.close()  # epoll forgets it then
                self.connect()

    def _check(self, connection: _Connection) -> None:
        answer, outcome = connection.answer, self.outcome
        if not answer[9:12].startswith(self._status) or not answer or self._content not in answer:
            outcome.wrong.append(answer)
            return
        if len(outcome.latencies) % _SAMPLE_EVERY == 0:
            outcome.samples.append(answer)
        outcome.latencies.append(time.perf_counter() - connection.due)


def _is_whole(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    _, found, length = head.partition(b"content-length:")
    if found:
        return len(answer) >= end + 4 + int(length.split(b"\r\n", 1)[0])
    return answer.endswith(b"0\r\n\r\n") and b"chunked" in head
