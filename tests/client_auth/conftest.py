"""A kind of credentials, at a service that takes certificates too, and a client of that kind."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.servers.certificates import MTLS_URL, PROXY


@pytest.fixture
def takes_certificates(settings: Settings) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = MTLS_URL, [PROXY]


@pytest.fixture
def erp(kind: Any, takes_certificates: None, db: None) -> Any:
    return kind.new()
