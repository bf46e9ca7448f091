"""Ends the wait for a database that does not answer, on connections that Django manages.

libpq waits for an answer as long as the connection is open, and that of a server that hangs, or of
a former primary that was not switched off, stays open for ever.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper


@contextlib.contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """If the block takes longer, the connection of this thread is shut down.

    What waits for an answer on it then fails with django.db.OperationalError. PostgreSQL only:
    SQLite runs in this process.
    """
    timer = threading.Timer(seconds, _shut_down_connection, [connections[DEFAULT_DB_ALIAS]])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut_down_connection(database: BaseDatabaseWrapper) -> None:
    opened = database.connection
    if database.vendor == "postgresql" and opened is not None:
        with contextlib.suppress(OSError, psycopg.Error):  # it has been closed just now
            shut_down(opened)


def shut_down(opened: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Both directions, so that a thread that waits on it finds the end; it must still be closed."""
    with socket.socket(fileno=os.dup(opened.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
