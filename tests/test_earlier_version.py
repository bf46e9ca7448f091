"""A `var/` made before the migrations were squashed: every way in says what to do."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.servers.service import manage, service_environment

FORMER = [
    ("contenttypes", "0001_initial"),
    ("taxpayers", "0001_initial"),
    ("taxpayers", "0002_permission_codes"),
    ("taxpayers", "0003_what_staff_may_do"),
    ("tokens", "0001_initial"),
    ("tokens", "0003_what_staff_may_do"),
]

pytestmark = pytest.mark.processes


def database_with(migrations: Iterable[tuple[str, str]], var: Path) -> dict[str, str]:
    """The environment of a service on a database in which these migrations were applied."""
    database = sqlite3.connect(var / "identity.sqlite3")
    database.execute(
        "CREATE TABLE django_migrations (id integer PRIMARY KEY, app varchar(255),"
        " name varchar(255), applied datetime)"
    )
    database.executemany(
        "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '2026-01-01')", migrations
    )
    database.commit()
    database.close()
    return service_environment(var, 0)


@pytest.mark.parametrize("serve", ["both", "login"])
@pytest.mark.parametrize("command", [("demo", "--no-serve"), ("migrate",)], ids=["demo", "migrate"])
def test_it_is_refused_with_the_way_out(
    command: tuple[str, ...], serve: str, tmp_path: Path
) -> None:
    environment = database_with(FORMER, tmp_path) | {"SERVE": serve}
    with pytest.raises(RuntimeError) as refused:
        manage(environment, *command)
    message = str(refused.value)
    assert (
        f"The database {tmp_path}/identity.sqlite3 was made by an earlier version and cannot be"
        " migrated. Nothing was released, so start over: run make clean, or remove"
        f" {tmp_path}, then run this again." in message
    )
    assert "Traceback" not in message


def test_a_database_of_this_version_is_not_refused(tmp_path: Path) -> None:
    environment = database_with([], tmp_path)
    manage(environment, "migrate", "-v0")
    manage(environment, "migrate", "-v0")
