"""An import that another node is running, and what an import writes."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection

from taxpayers.services import one_import_at_a_time
from tests.support.at_once import begin, end


@contextlib.contextmanager
def import_elsewhere() -> Iterator[None]:
    """Until the end of the block, another connection has the lock of an import."""
    has_it, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        # PostgreSQL may end the connection.
        with contextlib.suppress(DatabaseError), one_import_at_a_time():
            has_it.set()
            is_over.wait(60)

    thread = begin(hold)
    try:
        assert has_it.wait(60)
        yield
    finally:
        is_over.set()
        end(thread)


@pytest.fixture
def another_import(db: None) -> Iterator[None]:
    with import_elsewhere():
        yield


@contextlib.contextmanager
def inserts() -> Iterator[list[tuple[str, bool]]]:
    """The table of each INSERT in the block, and whether it was in the import's transaction."""
    executed: list[tuple[str, bool]] = []
    depth = len(connection.savepoint_ids)
    if connection.vendor == "postgresql":
        depth += 1  # the lock is one more

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT"):
            table = sql.split()[2].strip('"')
            executed.append((table, len(connection.savepoint_ids) > depth))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield executed
