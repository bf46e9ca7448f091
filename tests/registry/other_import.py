"""An import that another node is running, for tests of those who must wait."""

import contextlib
import threading
from collections.abc import Iterator

import pytest
from django.db import connections

from taxpayers.services import one_import_at_a_time


@contextlib.contextmanager
def import_elsewhere() -> Iterator[None]:
    """Until the end of the block, another connection has the lock of an import."""
    has_it, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with one_import_at_a_time():
                has_it.set()
                is_over.wait(60)
        finally:
            connections.close_all()  # of this thread

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert has_it.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.fixture
def another_import(db: None) -> Iterator[None]:
    """Another import runs during this test."""
    with import_elsewhere():
        yield
