"""One process of the server: what gunicorn is told of it."""

import asyncio
import time

import pytest
from uvicorn.config import Config

from identity.server import worker
from identity.server.connection import Connection
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
        connections.extend(kind(config, process.server_state, {}) for kind in (Faulty, Right))
        tasks.append(asyncio.create_task(process._enforce_deadlines()))
        await asyncio.wait(tasks)

    monkeypatch.setattr(worker, "_TICK_SECONDS", 0)
    config = Config("identity.asgi:application")
    config.load()
    connections: list[Connection] = []
    asyncio.run(run())
    assert enforced == ["aborted", "right"]
