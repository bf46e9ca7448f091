"""One process of the server: what gunicorn hears of it."""

import asyncio
import time

import pytest
from uvicorn.config import Config

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
