"""A client of a kind of credentials, at a service that takes certificates too."""

from typing import Any

import pytest


@pytest.fixture
def erp(kind: Any, takes_certificates: None, db: None) -> Any:
    return kind.new()
