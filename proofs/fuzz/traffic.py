"""Sends inputs over many raw sockets at once, and gives each answer to a judge.

Framed inputs are pipelined on connections that stay open; every other input has its own. Each
connection comes from another address of the loopback network, as from another client. A judge and a
report get what was sent on the same connection, too: it may be the cause.
"""

import select
import socket
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
class _Connection:
    socket: socket.socket
    route: Route
    unanswered: deque[FuzzInput]
    unsent: deque[bytes]
    sent: list[FuzzInput]
    deadline: float = 0.0
    received: bytes = b""
    answers: int = 0
    latest: FuzzInput | None = None  # that was answered
    is_last_answered: bool = False  # the server has announced that it closes
    wants_to_write: bool = False

    @property
    def kind(self) -> Kind:
        return self.route[0]


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
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._open: Counter[Route] = Counter()
        self._queues: defaultdict[Route, deque[FuzzInput]] = defaultdict(deque)
        self._is_over = False

    def run(self, every_second: Callable[[], bool]) -> None:
        """Until there are no more inputs, or `every_second()` is false."""
        look_at = time.monotonic()
        try:
            while True:
                self._take_inputs()
                for route in [*self._queues]:
                    self._start(route)
                for descriptor, _ in self._poll.poll(0.05):
                    self._turn(self._connections[descriptor])
                now = time.monotonic()
                if now >= look_at:
                    self._enforce_deadlines(now)
                    if not every_second():
                        return
                    look_at = now + 1
                unanswered = (connection.unanswered for connection in self._connections.values())
                if self._is_over and not any(self._queues.values()) and not any(unanswered):
                    return
        finally:
            for connection in [*self._connections.values()]:
                self._close(connection)
            self._poll.close()

    # --- Sending ----------------------------------------------------------------------------------

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

    def _start(self, route: Route) -> None:
        queue, (kind, name) = self._queues[route], route
        if kind is Kind.FRAMED and queue:
            for connection in [*self._connections.values()]:
                if connection.route == route:
                    self._pipeline(connection)
        while queue and self._open[route] < (1 if name else _CONNECTIONS[kind]):
            connection = self._connect(route)
            if kind is Kind.FRAMED:
                self._pipeline(connection)
            else:
                self._give(connection, queue.popleft())

    def _pipeline(self, connection: _Connection) -> None:
        queue = self._queues[connection.route]
        while (
            queue
            and len(connection.unanswered) < _PIPELINED
            and len(connection.sent) < _INPUTS_OF_A_CONNECTION
            and not connection.is_last_answered
        ):
            self._give(connection, queue.popleft())

    def _connect(self, route: Route) -> _Connection:
        client = socket.socket()
        client.setsockopt(socket.SOL_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(_ANSWER_SECONDS)
        a, b, c = (self._rng.randrange(1, 255) for _ in range(3))
        client.bind((f"127.{a}.{b}.{c}", 0))
        client.connect(("127.0.0.1", self._port))
        client.setblocking(False)
        connection = _Connection(client, route, deque(), deque(), [])
        self._connections[client.fileno()] = connection
        self._open[route] += 1
        self._poll.register(client, select.EPOLLIN)
        return connection

    def _give(self, connection: _Connection, one: FuzzInput) -> None:
        seconds = _OPEN_SECONDS if one.kind is Kind.OPEN else _ANSWER_SECONDS
        connection.deadline = time.monotonic() + seconds
        connection.unanswered.append(one)
        connection.unsent.extend(one.parts)
        connection.sent.append(one)
        self._send(connection)

    def _send(self, connection: _Connection) -> None:
        """The next part; another one when the socket is writable again."""
        try:
            while connection.unsent:
                count = connection.socket.send(connection.unsent[0])
                part = connection.unsent.popleft()
                if count < len(part):
                    connection.unsent.appendleft(part[count:])
                    break
                if connection.kind is not Kind.FRAMED:
                    break  # so that parts arrive as parts
            if not connection.unsent and connection.kind is Kind.ENDED:
                connection.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            connection.unsent.clear()  # closed; what it has answered can still be read
        if bool(connection.unsent) != connection.wants_to_write:
            connection.wants_to_write = bool(connection.unsent)
            events = select.EPOLLIN | (select.EPOLLOUT if connection.wants_to_write else 0)
            self._poll.modify(connection.socket, events)

    # --- Answers ----------------------------------------------------------------------------------

    def _turn(self, connection: _Connection) -> None:
        if connection.unsent:
            self._send(connection)
        is_closed = was_reset = False
        try:
            data = connection.socket.recv(262_144)
            is_closed = not data
            connection.received += data
        except BlockingIOError:
            return
        except OSError:
            is_closed = was_reset = True
        try:
            self._read(connection, is_closed)
        except NotAnAnswer as fault:
            self._fail(connection, f"not an answer: {fault}")
            self._close(connection)
            return
        if is_closed:
            self._ended(connection, was_reset)
        elif len(connection.sent) >= _INPUTS_OF_A_CONNECTION and not connection.unanswered:
            self._close(connection)

    def _read(self, connection: _Connection, is_closed: bool) -> None:
        while connection.received:
            if not connection.unanswered:
                raise NotAnAnswer(f"unasked: {connection.received[:300]!r}")
            one = connection.unanswered[0]
            is_framed = one.kind is Kind.FRAMED
            # Whether an answer is one to HEAD is clear only where there is one request.
            has_body = one.method != b"HEAD" if is_framed else None if b"HEAD" in one.data else True
            found = next_answer(connection.received, has_body=has_body, is_closed=is_closed)
            if found is None:
                return
            answer, length = found
            connection.received = connection.received[length:]
            if answer.status < 200:
                continue
            connection.answers += 1
            connection.is_last_answered = "close" in answer.headers.get("connection", "")
            connection.deadline = max(connection.deadline, time.monotonic() + _ANSWER_SECONDS)
            if is_framed:
                connection.latest = connection.unanswered.popleft()
            self._judge(one, answer, connection.sent)

    def _ended(self, connection: _Connection, was_reset: bool) -> None:
        how = "reset" if was_reset else "closed"
        unanswered = connection.unanswered
        if connection.received:
            self._fail(connection, f"{how} within an answer: {connection.received[:300]!r}")
        elif connection.kind is Kind.FRAMED:
            if connection.is_last_answered:  # so the rest was never read
                self._queues[connection.route].extendleft(reversed(unanswered))
            elif unanswered:
                self._fail(connection, f"{how} without an answer")
        elif not connection.answers:
            self._fail(connection, f"{how} without an answer")
        self._close(connection)

    def _enforce_deadlines(self, now: float) -> None:
        for connection in [*self._connections.values()]:
            if connection.unanswered and now > connection.deadline:
                self._fail(connection, "no answer in time")
                self._close(connection)

    def _fail(self, connection: _Connection, fault: str) -> None:
        if connection.unanswered:
            self._report(connection.unanswered[0], fault, connection.sent)
        elif connection.latest is not None:
            self._report(connection.latest, fault, connection.sent)
        if connection.kind is Kind.FRAMED:  # what was pipelined behind it was not to blame
            behind = [*connection.unanswered][1:]
            self._queues[connection.route].extendleft(reversed(behind))

    def _close(self, connection: _Connection) -> None:
        with suppress(OSError):
            self._poll.unregister(connection.socket)
        if self._connections.pop(connection.socket.fileno(), None) is not None:
            self._open[connection.route] -= 1
        connection.unanswered.clear()
        connection.socket.close()
