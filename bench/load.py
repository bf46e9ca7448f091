"""A load generator: raw sockets, requests rendered beforehand, every answer checked.

Closed loop (each connection sends its next request as soon as it is answered) or open loop (a
fixed rate, whatever the server does; latency counts from the moment a request was due). It runs in
the process of the benchmark, whose CPU time is nobody's cost.
"""

import gc
import heapq
import random
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_DRAIN_SECONDS = 10.0


class WrongAnswer(Exception):
    """A server answered something else than it must: its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer must be: its status, and a piece of its body."""

    status: int
    marker: bytes
    # So many others are right as well: a limit lets a few through before it refuses.
    others: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    port: int
    requests: Sequence[bytes]
    connections: int
    seconds: float
    expected: Expected
    rate: float | None = None  # requests a second; None: closed loop


@dataclass(slots=True)
class Outcome:
    """What was answered. `latencies` in seconds, in no order."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)
    wrong_count: int = 0
    closed: int = 0  # connections that the server did not keep
    samples: list[bytes] = field(default_factory=list)  # every so many answers, for a closer look

    @property
    def answered(self) -> int:
        return len(self.latencies)

    def raise_if_wrong(self, name: str) -> None:
        """Raises WrongAnswer, with a few of them, if one was wrong or there was none at all."""
        if self.wrong_count or not self.answered:
            shown = b"\n".join(self.wrong[:3]).decode(errors="replace")
            raise WrongAnswer(f"{name}: {self.wrong_count} wrong answers, such as\n{shown}")


class _Connection:
    __slots__ = ("answer", "begun", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""
        self.begun = 0.0


class _Run:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.outcome = Outcome()
        self.poll = select.epoll()
        self.connections: dict[int, _Connection] = {}
        self.idle: deque[_Connection] = deque()
        self.requests = self._endless(load.requests)
        self.status = str(load.expected.status).encode()

    @staticmethod
    def _endless(requests: Sequence[bytes]) -> Iterator[bytes]:
        while True:
            yield from requests

    def open(self) -> None:
        connection = _Connection(self.load.port)
        descriptor = connection.socket.fileno()
        self.connections[descriptor] = connection
        self.poll.register(descriptor, select.EPOLLIN)
        self.idle.append(connection)

    def close(self, connection: _Connection) -> None:
        descriptor = connection.socket.fileno()
        self.poll.unregister(descriptor)
        del self.connections[descriptor]
        connection.socket.close()

    def send(self, due: float) -> None:
        connection = self.idle.popleft()
        connection.begun = due
        connection.answer = b""
        connection.socket.send(next(self.requests))

    def receive(self, timeout: float) -> None:
        """Takes what has come; connections whose answer is whole are idle again."""
        for descriptor, _ in self.poll.poll(timeout):
            connection = self.connections[descriptor]
            try:
                data = connection.socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                self._ended(connection)
                continue
            answer = connection.answer = connection.answer + data if connection.answer else data
            if _is_whole(answer):
                self._check(answer, time.perf_counter() - connection.begun)
                connection.begun = 0.0
                self.idle.append(connection)

    def _ended(self, connection: _Connection) -> None:
        """The server closed: after an answer without a length that is its end."""
        self.outcome.closed += 1
        if connection.begun:
            self._check(connection.answer, time.perf_counter() - connection.begun)
        else:
            self.idle.remove(connection)
        self.close(connection)
        self.open()

    def _check(self, answer: bytes, latency: float) -> None:
        outcome = self.outcome
        if answer[9:12] != self.status or self.load.expected.marker not in answer:
            outcome.wrong_count += 1
            if len(outcome.wrong) < 5:
                outcome.wrong.append(answer)
            return
        if len(outcome.latencies) % 500 == 0:
            outcome.samples.append(answer)
        outcome.latencies.append(latency)

    def closed_loop(self) -> None:
        until = time.perf_counter() + self.load.seconds
        while (now := time.perf_counter()) < until:
            while self.idle:
                self.send(now)
            self.receive(0.1)

    def open_loop(self, rate: float) -> None:
        """Arrivals at random moments (Poisson), as from clients that know nothing of each other."""
        started = time.perf_counter()
        until = started + self.load.seconds
        chance = random.Random(1)  # noqa: S311 - no secret; the same moments in every run
        due: list[float] = [started]
        while (now := time.perf_counter()) < until:
            while due[0] <= now:
                if not self.idle:
                    break
                arrival = heapq.heappop(due)
                heapq.heappush(due, arrival + chance.expovariate(rate))
                self.send(arrival)
            wait = 0.1 if not self.idle else max(0.0, min(due[0] - time.perf_counter(), 0.1))
            self.receive(wait if wait > 0.001 else 0.0)

    def drain(self) -> None:
        until = time.perf_counter() + _DRAIN_SECONDS
        while len(self.idle) < len(self.connections) and time.perf_counter() < until:
            self.receive(0.1)


def run(load: Load) -> Outcome:
    """Sends for `load.seconds`, waits for what is under way, and says what came back.

    Raises ConnectionError if nobody listens.
    """
    run_ = _Run(load)
    for _ in range(load.connections):
        run_.open()
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    try:
        if load.rate is None:
            run_.closed_loop()
        else:
            run_.open_loop(load.rate)
        run_.drain()
    finally:
        gc.enable()
        for connection in list(run_.connections.values()):
            run_.close(connection)
        run_.poll.close()
    outcome = run_.outcome
    outcome.seconds = time.perf_counter() - started
    outcome.wrong_count = max(0, outcome.wrong_count - load.expected.others)
    return outcome


def _is_whole(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    _, found, length = head.partition(b"content-length:")
    if found:
        return len(answer) >= end + 4 + int(length.split(b"\r\n", 1)[0])
    return answer.endswith(b"0\r\n\r\n") and b"chunked" in head


def percentile(latencies: Sequence[float], share: float) -> float:
    """The latency that this share of the answers did not exceed, in milliseconds."""
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0
