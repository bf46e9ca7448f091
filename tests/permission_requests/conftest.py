"""A service with the scopes of intermediaries that ask, and of taxpayers that see who acts."""

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def scopes(settings: Settings) -> None:
    from tests.permission_requests.parties import ALL_SCOPES

    settings.SCOPES = ALL_SCOPES
