"""A service behind one trusted proxy that asks clients for certificates."""

import pytest
from pytest_django import Settings

from tests.servers.certificates import MTLS_URL, PROXY


@pytest.fixture(autouse=True)
def behind_a_proxy(settings: Settings) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = MTLS_URL, [PROXY]
