"""One process of the server: what gunicorn is told of it, and when its door is closed."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gunicorn.config
import gunicorn.glogging
import pytest
from uvicorn.config import Config

from identity.server import readiness, worker
from identity.server.connection import Connection
from identity.server.fair_share import ConnectionCounts
from identity.server.listener import Listener, refuse_handshakes
from identity.server.overload import StartQueue
from identity.server.readiness import Closing, Readiness
from identity.server.worker import Process


@pytest.mark.parametrize("clock_is_set_by", [0, 5, -5, -3600])
def test_a_clock_that_is_set_does_not_silence_the_signs_of_life(
    clock_is_set_by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs: list[float] = []
    now = time.time()

    async def notify() -> None:
        signs.append(now)

    async def pass_time(seconds: int) -> None:
        nonlocal now
        for _ in range(seconds):
            now += 1.1
            await process.on_tick(0)

    async def run() -> None:
        nonlocal now
        await pass_time(3)
        now += clock_is_set_by
        await pass_time(5)

    monkeypatch.setattr(time, "time", lambda: now)
    process = Process(
        Config("identity.asgi:application", callback_notify=notify, timeout_notify=1), slot=0
    )
    asyncio.run(run())
    assert len(signs) >= 3 + 4


def test_a_process_whose_master_ended_while_it_started_ends_too() -> None:
    process = Process(Config("identity.asgi:application"), slot=0)
    process.master += 1
    assert asyncio.run(process.on_tick(0))


def test_warnings_of_uvicorn_are_in_the_log_of_the_service_and_nothing_less(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("uvicorn.error")
    before = {"handlers": [logging.NullHandler()], "level": logging.DEBUG, "propagate": False}
    for name, value in before.items():
        monkeypatch.setattr(log, name, value)
    monkeypatch.setattr(worker, "counts", ConnectionCounts())
    settings = gunicorn.config.Config()
    worker.Worker(0, 0, [], None, 0, settings, gunicorn.glogging.Logger(settings)).tmp.close()
    log.info("nothing new")
    log.warning("it fails")
    assert ([record.message for record in caplog.records], log.handlers) == (["it fails"], [])


def test_a_fault_of_one_connection_ends_that_one_and_no_deadline_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enforced: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    class Faulty(Connection):
        def enforce_deadlines(self, now: float) -> None:
            raise ArithmeticError

        def abort(self) -> None:
            enforced.append("aborted")
            connections.remove(self)

    class Right(Connection):
        def enforce_deadlines(self, now: float) -> None:
            enforced.append("right")
            assert connections == [self]
            tasks[0].cancel()

    async def run() -> None:
        process = Process(config, slot=0)
        monkeypatch.setattr(process.server_state, "connections", connections)
        state, queue = process.server_state, StartQueue(asyncio.get_running_loop(), ())
        connections.extend(kind(queue, config, state, {}) for kind in (Faulty, Right))
        tasks.append(asyncio.create_task(process._enforce_deadlines()))
        await asyncio.wait(tasks)

    monkeypatch.setattr(worker, "_TICK_SECONDS", 0)
    config = Config("identity.asgi:application")
    config.load()
    connections: list[Connection] = []
    asyncio.run(run())
    assert enforced == ["aborted", "right"]


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"accepted")
        transport.close()


class Share(ConnectionCounts):
    """Always leaves the next connection to others, or never."""

    def __init__(self, *, always: bool) -> None:
        super().__init__()
        self.always = always

    def has_more_than_another(self, slot: int, unpublished: int = 0) -> bool:
        return self.always

    def next_step(self, slot: int) -> int:
        return 1


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
        await Listener(listening, Greeter, Share(always=True), 0).close()

    with crowd(400) as (listening, clients), asyncio.Runner() as runner:
        runner.run(close_at_once(listening))
        runner.run(asyncio.sleep(0.2))  # until all of them have been answered
        assert {client.recv(100) for client in clients} == {b"accepted"}


def test_who_connects_while_it_closes_is_still_accepted() -> None:
    async def connect(listening: socket.socket) -> bytes:
        closing = asyncio.create_task(Listener(listening, Greeter, Share(always=False), 0).close())
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        greeting = await reader.read(100)
        writer.close()
        await closing
        return greeting

    with crowd(0) as (listening, _):
        assert asyncio.run(connect(listening)) == b"accepted"


@contextlib.contextmanager
def crowd(size: int) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """A listening socket, and so many clients in its queue."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=500))
        address = listening.getsockname()
        clients = [
            stack.enter_context(socket.create_connection(address, timeout=5)) for _ in range(size)
        ]
        yield listening, clients


@pytest.mark.parametrize(
    ("size", "always", "turns", "pause"),
    [(300, False, 20, 0), (3, True, 3000, 0.01)],
    ids=["a crowd, at once", "left to others, and no process takes it"],
)
def test_who_is_in_the_queue_is_accepted(size: int, always: bool, turns: int, pause: float) -> None:
    opened: list[Greeter] = []

    def protocol() -> Greeter:
        opened.append(Greeter())
        return opened[-1]

    async def accept(listening: socket.socket) -> None:
        listener = Listener(listening, protocol, Share(always=always), 0)
        for _ in range(turns):
            await asyncio.sleep(pause)
            if len(opened) == size:
                break
        assert len(opened) == size
        await listener.close()

    with crowd(size) as (listening, _):
        asyncio.run(accept(listening))


def test_the_door_is_closed_while_there_is_a_fault_and_open_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault: str | None = None

    class Checked(Readiness):
        async def checks(self) -> dict[str, str]:
            return {"clock": fault or "ok"}

    async def run() -> list[bool]:
        nonlocal fault
        door = Listener(listening, Greeter, Share(always=False), 0)
        node = Closing(Checked(), [door], lambda: None)
        monkeypatch.setattr(node, "_reason_to_close", lambda: fault)
        states = []
        for found in ("wrong", None, "wrong", None):
            fault = found
            await node._look()
            states.append(listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1)
        await door.close()
        return states

    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert asyncio.run(run()) == [False, True, False, True]
    told = ["no connection is accepted", "connections are accepted again"]
    assert caplog.messages == told * 2


@pytest.mark.parametrize(
    ("moments", "window"),
    [
        ([(0, "clock", 7)], None),  # first, others find out whether they have the fault as well
        ([(0, "clock", 7), (5, "clock", 7)], 2),
        ([(0, "clock", 7), (60, "clock", 7)], 10),  # not what was issued long ago
        ([(0, "clock", 7), (5, "clock", 8)], None),  # it issues tokens
        ([(0, "clock", 7), (5, None, 7)], None),
        ([(0, "clock", 7), (5, None, 7), (60, "clock", 7)], None),
        ([(0, "clock", 7), (5, "clock", 8), (9, "clock", 8)], 1),
    ],
)
def test_a_node_closes_if_others_have_issued_tokens_since_its_fault(
    moments: list[tuple[float, str | None, float]],
    window: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows: list[float] = []
    node = Closing(None, (), lambda: None)  # type: ignore[arg-type]

    def is_served_elsewhere(seconds: float) -> bool:
        windows.append(seconds)
        return True

    monkeypatch.setattr(readiness, "is_served_elsewhere", is_served_elsewhere)
    reason = None
    for at, fault, issued in moments:
        monkeypatch.setattr(readiness, "uptime", lambda at=at: at)
        monkeypatch.setattr(readiness, "own_fault", lambda _at, fault=fault: fault)
        monkeypatch.setattr(readiness, "issued_by_this_node", lambda issued=issued: issued)
        windows.clear()
        reason = node._reason_to_close()
    assert (reason, windows) == (("clock", [window]) if window else (None, []))


@pytest.mark.parametrize(
    ("number", "at_once"),
    [("SIGTERM", False), ("SIGHUP", False), ("SIGINT", True), ("SIGQUIT", True)],
)
def test_a_signal_ends_the_process_and_some_do_not_wait_for_its_connections(
    number: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[signal.Signals, Any] = {}
    loop = SimpleNamespace(add_signal_handler=handlers.__setitem__)
    process = Process(Config("identity.asgi:application"), slot=0)
    process.server_state.connections.add(type("Idle", (), {"is_stopping": True})())
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: loop)
        with process.capture_signals():
            handlers[signal.Signals[number]]()
    assert process.should_exit

    async def ends() -> bool:
        waiting = asyncio.ensure_future(process._until_idle())
        await asyncio.sleep(0.01)
        return waiting.done()

    assert asyncio.run(ends()) is at_once
