"""Work on other connections of the database, while the test goes on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread
from typing import Any

from django.db import connection

from taxpayers.services import ServiceError

SECONDS = 60.0


def begin(work: Callable[[], object]) -> Thread:
    """A thread with another connection, which ends with it."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    return thread


def end(*threads: Thread) -> None:
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def at_once(*acts: Callable[[], object]) -> list[Any]:
    """What each got that ran in its own thread: a result, or its ServiceError."""
    barrier = Barrier(len(acts))

    def one(act: Callable[[], object]) -> object:
        try:
            connection.ensure_connection()  # so that the race is about the rows
            barrier.wait()
            return act()
        except ServiceError as fault:
            return fault
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))
