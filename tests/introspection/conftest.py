"""A protected API that has asked in this minute before."""

import pytest


@pytest.fixture
def later_in_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has stored in this minute that the secret of the API was used."""
    from tokens.store.api_secret_use import UsesOfThisMinute

    monkeypatch.setattr(UsesOfThisMinute, "is_first", lambda *_args: False)
