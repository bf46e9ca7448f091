"""The collector as a fixture."""

from collections.abc import Iterator

import pytest

from tests.servers.processes import stopping
from tests.traces.collector import Collector


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A new one for each test."""
    started = Collector()
    with stopping(started):
        yield started
