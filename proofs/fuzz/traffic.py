"""Sends inputs over many raw sockets at once, and gives each answer to a judge.

Framed inputs are pipelined on connections that stay open; every other input has its own. Each
connection comes from another address of the loopback network, as from another client. A judge and a
report get what was sent on the same connection, too: it may be the cause.
"""

import asyncio
import socket
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from proofs.fuzz.corpus import FuzzInput, Kind
from tests.servers.wire import NotAnAnswer, WireAnswer, next_answer

_CONNECTIONS = {Kind.FRAMED: 16, Kind.ENDED: 32, Kind.OPEN: 100}
_PIPELINED = 6
_ENOUGH_WAITING, _MOST_WAITING = 50, 500  # of the inputs of a kind
_INPUTS_OF_A_CONNECTION = 150  # then another client comes
_ANSWER_SECONDS = 30.0  # far beyond what the service promises: this machine is busy
_OPEN_SECONDS = 45.0  # an incomplete request (10), and a connection without a request (15)
_IP_BIND_ADDRESS_NO_PORT = 24

Sent = Sequence[FuzzInput]  # on the same connection, in this order
Judge = Callable[[FuzzInput, WireAnswer, Sent], None]
Report = Callable[[FuzzInput, str, Sent], None]
Route = tuple[Kind, str]  # which inputs may share a connection


@dataclass(slots=True)
class _Talk:
    """What was sent on a connection, and what of it has no answer yet."""

    kind: Kind
    queue: deque[FuzzInput]  # of inputs that may be sent on it
    sent: list[FuzzInput] = field(default_factory=list)
    unanswered: deque[FuzzInput] = field(default_factory=deque)
    received: bytes = b""
    answers: int = 0
    latest: FuzzInput | None = None  # that was answered
    is_last_answered: bool = False  # the server has announced that it closes

    def take(self) -> list[FuzzInput]:
        taken = []
        while self.queue and self._has_room():
            taken.append(self.queue.popleft())
            self.sent.append(taken[-1])
            self.unanswered.append(taken[-1])
        return taken

    def _has_room(self) -> bool:
        if self.kind is not Kind.FRAMED:
            return not self.sent
        is_over = self.is_last_answered or len(self.sent) >= _INPUTS_OF_A_CONNECTION
        return not is_over and len(self.unanswered) < _PIPELINED


class Traffic:
    """`run` returns when every input has its answers."""

    def __init__(
        self, port: int, inputs: Iterator[FuzzInput], judge: Judge, report: Report, rng: Random
    ) -> None:
        self._port = port
        self._inputs = inputs
        self._judge = judge
        self._report = report
        self._rng = rng
        self._open: Counter[Route] = Counter()
        self._queues: defaultdict[Route, deque[FuzzInput]] = defaultdict(deque)
        self._is_over = False

    def run(self, every_second: Callable[[], bool]) -> None:
        """Until there are no more inputs, or `every_second()` is false."""
        asyncio.run(self._run(every_second))

    async def _run(self, every_second: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        look_at, talks = loop.time(), set[asyncio.Task[None]]()
        while not self._is_over or any(self._queues.values()) or talks:
            self._take_inputs()
            for route, queue in self._queues.items():
                most = 1 if route[1] else _CONNECTIONS[route[0]]
                for _ in range(min(len(queue), most - self._open[route])):
                    self._open[route] += 1
                    talks.add(loop.create_task(self._talk(route)))
            if talks:
                ended, talks = await asyncio.wait(
                    talks, timeout=0.05, return_when=asyncio.FIRST_COMPLETED
                )
                for talk in ended:
                    talk.result()
            if loop.time() >= look_at:
                if not every_second():
                    return  # what is under way is cancelled
                look_at = loop.time() + 1

    def _take_inputs(self) -> None:
        while not self._is_over:
            waiting = Counter[Kind]()
            for route, queue in self._queues.items():
                waiting[route[0]] += len(queue)
            if max(waiting.values(), default=0) >= _MOST_WAITING:
                return
            if all(waiting[kind] >= _ENOUGH_WAITING for kind in (Kind.FRAMED, Kind.ENDED)):
                return
            taken = list(islice(self._inputs, _ENOUGH_WAITING))
            for one in taken:
                self._queues[one.kind, one.connection].append(one)
            self._is_over = len(taken) < _ENOUGH_WAITING

    async def _talk(self, route: Route) -> None:
        """A connection, until all that is sent there was answered or the server closes it."""
        loop, talk = asyncio.get_running_loop(), _Talk(route[0], self._queues[route])
        seconds = _OPEN_SECONDS if talk.kind is Kind.OPEN else _ANSWER_SECONDS
        try:
            inputs = talk.take()
            with self._socket() as client:
                if inputs:
                    async with asyncio.timeout(seconds):
                        await loop.sock_connect(client, ("127.0.0.1", self._port))
                ends_at = loop.time() + seconds
                # Behind the last answer only the end may come.
                while talk.unanswered or talk.is_last_answered:
                    how, answers = "closed", talk.answers
                    try:
                        async with asyncio.timeout_at(ends_at):
                            await self._send(client, inputs)
                            data = await loop.sock_recv(client, 262_144)
                    except TimeoutError:
                        self._fail(talk, "no answer in time")
                        return
                    except OSError:
                        data, how = b"", "reset"
                    talk.received += data
                    try:
                        self._read(talk, is_closed=not data)
                    except NotAnAnswer as fault:
                        self._fail(talk, f"not an answer: {fault}")
                        return
                    if not data:
                        self._ended(talk, how)
                        return
                    if talk.answers > answers:  # for the next one
                        ends_at = loop.time() + seconds
                    inputs = talk.take()
        finally:
            self._open[route] -= 1

    def _socket(self) -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        a, b, c = (self._rng.randrange(1, 255) for _ in range(3))
        client.bind((f"127.{a}.{b}.{c}", 0))
        return client

    @staticmethod
    async def _send(client: socket.socket, inputs: Sequence[FuzzInput]) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # closed; what it has answered can still be read
            for one in inputs:
                for part in one.parts:
                    await loop.sock_sendall(client, part)
                    await asyncio.sleep(0)  # so that parts arrive as parts
                if one.kind is Kind.ENDED:
                    client.shutdown(socket.SHUT_WR)

    def _read(self, talk: _Talk, *, is_closed: bool) -> None:
        while talk.received:
            if not talk.unanswered:
                raise NotAnAnswer(f"unasked: {talk.received[:300]!r}")
            one = talk.unanswered[0]
            is_framed = one.kind is Kind.FRAMED
            # Whether an answer is one to HEAD is clear only where there is one request.
            has_body = one.method != b"HEAD" if is_framed else None if b"HEAD" in one.data else True
            found = next_answer(talk.received, has_body=has_body, is_closed=is_closed)
            if found is None:
                return
            answer, length = found
            talk.received = talk.received[length:]
            if answer.status < 200:
                continue
            talk.answers += 1
            talk.is_last_answered = "close" in answer.headers.get("connection", "")
            if is_framed:
                talk.latest = talk.unanswered.popleft()
            self._judge(one, answer, talk.sent)

    def _ended(self, talk: _Talk, how: str) -> None:
        is_framed = talk.kind is Kind.FRAMED
        if talk.received:
            self._fail(talk, f"{how} within an answer: {talk.received[:300]!r}")
        elif is_framed and talk.is_last_answered:  # so the rest was never read
            talk.queue.extendleft(reversed(talk.unanswered))
        elif talk.unanswered if is_framed else not talk.answers:
            self._fail(talk, f"{how} without an answer")

    def _fail(self, talk: _Talk, fault: str) -> None:
        if one := talk.unanswered[0] if talk.unanswered else talk.latest:
            self._report(one, fault, talk.sent)
        if talk.kind is Kind.FRAMED:  # what was pipelined behind it was not to blame
            talk.queue.extendleft(reversed([*talk.unanswered][1:]))
