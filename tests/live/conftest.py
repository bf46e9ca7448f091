"""What the tests of running services share."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker


@pytest.fixture(scope="package", autouse=True)
def databases_of_services(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """This process may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield
