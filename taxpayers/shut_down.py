"""Ends the wait for a database that does not answer, on connections that Django manages.

libpq waits for an answer as long as the connection is open, and that of a server that hangs, or of
a former primary that was not switched off, stays open for ever.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper


def answered_within(seconds: float) -> contextlib.AbstractContextManager[None]:
    """If the block takes longer, the connection of this thread is shut down (PostgreSQL only).

    What waits for an answer on it then fails with django.db.OperationalError.
    """
    return _unless_done(seconds, shut_down)


def cancelled_after(seconds: float) -> contextlib.AbstractContextManager[None]:
    """If the block takes longer, PostgreSQL is asked to end what it does for this thread.

    A commit that waits for a standby then counts as done, so this is only for what stores nothing.
    Unlike a connection that is shut down, it leaves no session behind that goes on waiting.
    """
    return _unless_done(seconds, lambda opened: opened.cancel_safe(timeout=1.0))


@contextlib.contextmanager
def _unless_done(seconds: float, end: Callable[[Any], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, _on_postgresql, [connections[DEFAULT_DB_ALIAS], end])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _on_postgresql(database: BaseDatabaseWrapper, end: Callable[[Any], object]) -> None:
    opened = database.connection
    if database.vendor == "postgresql" and opened is not None:
        with contextlib.suppress(OSError, psycopg.Error):  # it has been closed just now
            end(opened)


def shut_down(opened: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Both directions, so that a thread that waits on it finds the end; it must still be closed."""
    with socket.socket(fileno=os.dup(opened.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
