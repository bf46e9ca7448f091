"""A protected API that asks."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.introspection.api import Api


@pytest.fixture
def api(db: None) -> "Api":
    """A protected API for the audience of every token."""
    from tests.introspection.api import new_api

    return new_api()
