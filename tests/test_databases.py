"""The database URL: PostgreSQL or SQLite, and any other is an error (contract 6)."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.databases import database

MALFORMED = r"is malformed\..*percent-encoding"
UNKNOWN = "The URL of a database must begin with postgresql:// or sqlite://, not {!r}."


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        *((None, "sqlite3"), ("", "sqlite3"), ("sqlite:///{folder}/registry.sqlite3", "sqlite3")),
        ("postgres://identity@127.0.0.1/identity", "postgresql"),
        ("postgresql://identity@127.0.0.1/identity?pooling=transaction", "postgresql"),
    ],
)
def test_a_known_engine_is_chosen_by_the_url(url: str | None, engine: str, tmp_path: Path) -> None:
    chosen = database(url and url.format(folder=tmp_path), tmp_path)
    assert chosen["ENGINE"] == f"django.db.backends.{engine}"


@pytest.mark.parametrize("scheme", ["mysql", "oracle", "postgresql+psycopg", "redshift", ""])
def test_an_unknown_engine_is_an_error_that_shows_no_password(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        database(f"{scheme}://identity:password@127.0.0.1/identity", tmp_path)
    assert str(error.value) == UNKNOWN.format(scheme)


@pytest.mark.parametrize(
    "rest",
    [
        *("identity:hunter/2@127.0.0.1", "identity:hunter#2@127.0.0.1"),
        *("identity:hunter[2@127.0.0.1", "identity@127.0.0.1:hunter", "identity@127.0.0.1:99999"),
    ],
)
def test_a_malformed_url_is_an_error_that_shows_nothing_of_it(rest: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=MALFORMED) as error:
        database(f"postgresql://{rest}/identity", tmp_path)
    assert "hunter" not in str(error.value)


def test_nothing_stays_in_a_session_that_a_pooler_gives_to_another(tmp_path: Path) -> None:
    direct = database("postgresql://u@h/n", tmp_path)
    pooled = database("postgresql://u@h/n?pooling=transaction&sslmode=require", tmp_path)
    assert direct["OPTIONS"]["prepare_threshold"] > 1_000_000  # on request only
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert "pooling" not in pooled["OPTIONS"]  # libpq knows no such option


def test_a_host_that_vanishes_is_noticed_in_ten_seconds(tmp_path: Path) -> None:
    """That these options do it: tests/live/test_silent_database.py, with smaller numbers."""
    options = database("postgresql://u@h/n", tmp_path)["OPTIONS"]
    assert options["connect_timeout"] == 3
    assert options["tcp_user_timeout"] == 10_000
    idle, each, times = (options[f"keepalives_{name}"] for name in ("idle", "interval", "count"))
    assert idle + each * times <= 10
