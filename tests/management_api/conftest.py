"""A service whose operators have added the scopes of the management API.

pytest reads this file before Django has its settings, so models are imported by the fixtures.
"""

from typing import TYPE_CHECKING

import pytest
from pytest_django import Settings

if TYPE_CHECKING:
    from tests.management_api.portal import Portal


@pytest.fixture(autouse=True)
def management_scopes(settings: Settings) -> None:
    from tests.management_api.portal import SCOPES

    settings.SCOPES = SCOPES
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def portal(db: None) -> "Portal":
    from tests.management_api.portal import new_portal

    return new_portal()
