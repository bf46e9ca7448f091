"""One import at a time, over all processes and nodes; an import that dies locks no other out."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from taxpayers.validation import ServiceError

# PostgreSQL releases it with the transaction, and so with the connection of a process that died.
_LOCK = "SELECT pg_try_advisory_xact_lock(7216548103395)"
# The connection of a node that vanished is ended as soon as it has done nothing for so long.
_END_IF_IDLE = "SET LOCAL idle_in_transaction_session_timeout = '60s'"


@contextlib.contextmanager
def one_import_at_a_time() -> Iterator[None]:
    """Raises ServiceError if another import is running.

    On PostgreSQL the block is one transaction. On SQLite it is none: other writers would wait.
    """
    with _lock_in_database() if connection.vendor == "postgresql" else _lock_in_file() as is_ours:
        if not is_ours:
            raise ServiceError(
                "Another import is running. Wait until it has ended, then start this one again."
            )
        yield


@contextlib.contextmanager
def _lock_in_database() -> Iterator[bool]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_LOCK)
            (is_ours,) = cursor.fetchone()
            cursor.execute(_END_IF_IDLE)
        yield is_ours


@contextlib.contextmanager
def _lock_in_file() -> Iterator[bool]:
    """The kernel releases the lock of a process that died."""
    file = os.open(Path(settings.VAR_DIR) / "import.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = True
        except BlockingIOError:
            is_ours = False
        yield is_ours
    finally:
        os.close(file)
