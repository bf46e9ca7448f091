"""Work on other connections of the database, while the test goes on."""

import threading
from collections.abc import Callable

from django.db import connection

SECONDS = 60.0


def begin(work: Callable[[], object]) -> threading.Thread:
    """A thread with another connection, which ends with it."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def end(*threads: threading.Thread) -> None:
    """Waits for all; raises AssertionError if one still runs."""
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
