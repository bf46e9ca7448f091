"""The collector as a fixture."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.servers.processes import stopping
from tests.traces.collector import Collector


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A new one for each test."""
    started = Collector()
    with stopping(started):
        yield started


@pytest.fixture
def databases_of_services(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A test may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield
