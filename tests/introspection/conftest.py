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


@pytest.fixture
def later_in_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has stored in this minute that the secret of the API was used."""
    from tokens.protected_apis.last_use import UsesOfThisMinute

    monkeypatch.setattr(UsesOfThisMinute, "is_first", lambda *_args: False)
