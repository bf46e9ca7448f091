"""The database URL: PostgreSQL or SQLite, and any other is an error (contract 6)."""

import os
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.databases import database
from tests.servers.service import clean_environment, manage


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        (None, "sqlite3"),
        ("", "sqlite3"),
        ("sqlite:///{folder}/registry.sqlite3", "sqlite3"),
        ("postgres://identity@127.0.0.1/identity", "postgresql"),
        ("postgresql://identity@127.0.0.1/identity?pooling=transaction", "postgresql"),
    ],
)
def test_a_known_engine_is_chosen_by_the_url(url: str | None, engine: str, tmp_path: Path) -> None:
    chosen = database(url and url.format(folder=tmp_path), tmp_path)
    assert chosen["ENGINE"] == f"django.db.backends.{engine}"


@pytest.mark.parametrize(
    "scheme",
    ["mysql", "oracle", "cockroachdb", "postgresql+psycopg", "redshift"],
)
def test_an_unknown_engine_is_an_error_that_shows_no_password(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        database(f"{scheme}://identity:password@127.0.0.1/identity", tmp_path)
    assert str(error.value) == (
        f"The URL of a database must begin with postgresql:// or sqlite://, not {scheme!r}."
    )


@pytest.mark.parametrize("url", ["identity.sqlite3", "/var/identity.sqlite3", "://"])
def test_a_url_without_a_scheme_is_an_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured):
        database(url, tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://identity:hunter/2@127.0.0.1/identity",
        "postgresql://identity:hunter#2@127.0.0.1/identity",
        "postgresql://identity:hunter[2@127.0.0.1/identity",
        "postgresql://identity@127.0.0.1:hunter/identity",
        "postgresql://identity@127.0.0.1:99999/identity",
    ],
)
def test_a_malformed_url_is_an_error_that_shows_nothing_of_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"is malformed\..*percent-encoding") as error:
        database(url, tmp_path)
    assert "hunter" not in str(error.value)


def test_an_unknown_way_of_pooling_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured):
        database("postgresql://identity@127.0.0.1/identity?pooling=session", tmp_path)


def test_no_command_starts_with_an_unknown_engine() -> None:
    environment = {
        **clean_environment(),
        "VAR_DIR": os.environ["VAR_DIR"],
        "DATABASE_URL": "mysql://identity@127.0.0.1/identity",
    }
    with pytest.raises(RuntimeError) as error:
        manage(environment, "check")
    assert str(error.value).splitlines() == [
        "manage.py check: Wrong setting: The URL of a database must begin with postgresql://"
        " or sqlite://, not 'mysql'."
    ]
