"""Every command: exit 0 with its answer, or 1, 2 or 75 with one line on stderr (contract 6)."""

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_django import Settings

from taxpayers.management.arguments import parse_end, parse_start
from tests.servers.postgres import Postgres
from tests.servers.processes import free_port
from tests.servers.service import service_environment
from tests.support.command_line import manage, other_database, run

TIN, AGENT = "C1234567890", "C9876543210"
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
REFUSED, WRONG_USAGE, TRY_AGAIN_LATER = 1, 2, 75
REASON = ("--reason", "leaked")
PAIR = ("--taxpayer", TIN, "--intermediary", AGENT)
# Of each base and each room, with arguments that it takes.
COMMANDS = {
    "register_taxpayer": (TIN, "--name", "Acme"),
    "revoke_permission": PAIR,
    "revoke_secret": (CLIENT_ID, "7aQ2"),
    "block_system_user": (CLIENT_ID, *REASON),
    "import_registry": ("registry.csv",),
    "explain_login": ("019d0c5e-8b3a-7cc4-9a51-6e3f0a1b2c3d",),
    "prune_logins": ("--older-than", "400d"),
    "rotate_signing_key": (),
    "deactivate_account": ("boss",),
    "enable_webhook": ("1",),
    "list": ("taxpayers",),
}
UNMIGRATED = "The database is not up to date. Run manage.py migrate, then this command again."
OUT_OF_REACH = f"postgresql://identity:hunter2@127.0.0.1:{free_port()}/identity"


def refused(
    result: tuple[int, str, str], expected: int = REFUSED, *, is_of_django: bool = False
) -> str:
    """The only line on stderr. A command of Django may have written to stdout before."""
    code, out, err = result
    assert (code, is_of_django or out == "") == (expected, True)
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_without_tables_is_one_line_with_what_to_do(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "registry.csv"
    file.write_text("tin,name\nC1234567890,Acme\n")
    arguments = [str(file) if a == file.name else a for a in COMMANDS[command]]
    with other_database("", tmp_path):
        fault = json.loads(refused(run(command, *arguments, "--json")))
    assert fault == {"error": "refused", "message": UNMIGRATED}


@pytest.mark.parametrize("command", ["register_taxpayer", "block_system_user", "explain_login"])
def test_an_unreachable_database_is_one_line_without_its_password(
    command: str, tmp_path: Path
) -> None:
    with other_database(OUT_OF_REACH, tmp_path):
        line = refused(run(command, *COMMANDS[command]), TRY_AGAIN_LATER)
    assert line.startswith("The database cannot be reached: ")
    assert line.endswith("Nothing has been changed.")
    assert "hunter2" not in line


def test_a_wrong_argument_is_one_line_and_not_the_usage() -> None:
    line = "the following arguments are required: TIN, --name"
    assert refused(run("register_taxpayer"), WRONG_USAGE) == line
    fault = json.loads(refused(run("register_taxpayer", "--json"), WRONG_USAGE))
    assert fault == {"error": "usage", "message": line}


@pytest.mark.django_db
def test_a_terminal_that_lacks_a_letter_still_gets_the_whole_answer() -> None:
    arguments = ("register_taxpayer", "C5555555555", "--name", "株式会社")
    code, out, err = run(*arguments, encoding="latin-1")
    assert (code, err) == (0, "")
    assert "C5555555555 is registered as \\u682a" in out


@pytest.fixture(scope="module")
def refusing_urls(postgres: Postgres) -> Iterator[dict[str, str]]:
    url = postgres.create_database()
    postgres.execute("CREATE DATABASE ascii TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
    yield {
        "another encoding": postgres.url("ascii"),
        "a missing database": f"{url}_missing",
        "an unreachable server": OUT_OF_REACH,
        "an unknown option": f"{url}?colour=hunter2",
    }
    for one in (url, postgres.url("ascii")):
        postgres.drop_database(one)


FAULTS = {
    "another encoding": "has the encoding SQL_ASCII, not UTF8",
    "a missing database": 'cannot be reached: .*database "database_[0-9]+_missing" does not exist',
    "an unreachable server": "cannot be reached: .*[Cc]onnection refused",
    "an unknown option": 'refuses this: invalid connection option "colour"',
}


# Each fault, met by a command of ours or by one of Django's; and more commands, of one fault.
@pytest.mark.parametrize(
    ("fault", "command"),
    [
        ("another encoding", ("migrate",)),
        ("a missing database", ("migrate",)),
        ("a missing database", ("register_taxpayer", TIN, "--name", "Acme")),
        ("an unknown option", ("migrate", "--check")),
        ("an unreachable server", ("createsuperuser", "--no-input", "--username", "a", "--email=")),
        ("an unreachable server", ("check", "--database", "default")),
        ("an unreachable server", ("rotate_signing_key", "--json")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_database_that_cannot_be_used_is_one_line(
    refusing_urls: dict[str, str], tmp_path: Path, fault: str, command: tuple[str, ...]
) -> None:
    environment = service_environment(tmp_path, 0, DATABASE_URL=refusing_urls[fault])
    expected = REFUSED if fault in ("an unknown option", "another encoding") else TRY_AGAIN_LATER
    line = refused(manage(environment, *command), expected, is_of_django=True)
    assert re.match(
        f"The database {FAULTS[fault]}", line.removeprefix(AS_JSON).removeprefix(OF_DJANGO)
    )
    assert "hunter2" not in line


OF_DJANGO = "CommandError: "
AS_JSON = '{"error": "try_again_later", "message": "'


@pytest.mark.processes
def test_a_developer_can_ask_for_the_traceback(tmp_path: Path) -> None:
    environment = service_environment(tmp_path, 0, DATABASE_URL=OUT_OF_REACH)
    code, _out, err = manage(environment, "migrate", "--traceback")
    assert code == 1
    assert "Traceback (most recent call last)" in err


@pytest.mark.parametrize("is_postgresql", [False, True], ids=["SQLite", "PostgreSQL"])
def test_a_command_of_django_on_a_database_without_tables_says_what_to_do(
    empty_postgres_url: str, tmp_path: Path, is_postgresql: bool
) -> None:
    given = {"DATABASE_URL": empty_postgres_url} if is_postgresql else {}
    environment = service_environment(tmp_path, 0, **given)
    assert refused(manage(environment, "changepassword", "boss")) == UNMIGRATED


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "first", "last"),
    [
        ("Asia/Kuala_Lumpur", "2026-03-01", "2026-02-28T16:00", "2026-03-01T15:59:59.999999"),
        ("UTC", "2026-03-01", "2026-03-01T00:00", "2026-03-01T23:59:59.999999"),
        ("UTC", "20240229", "2024-02-29T00:00", "2024-02-29T23:59:59.999999"),
        # "For ever", as people write it, must not overflow.
        ("Asia/Kuala_Lumpur", "9999-12-31", "9999-12-30T16:00", "9999-12-31T15:59:59.999999"),
        # Cairo puts its clocks forward at midnight: that day begins at one o'clock,
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00", "2026-04-24T20:59:59.999999"),
        # and back at midnight: the last hour of that day comes twice.
        ("Africa/Cairo", "2026-10-29", "2026-10-28T21:00", "2026-10-29T21:59:59.999999"),
    ],
)
def test_a_day_lasts_from_its_parse_start_to_its_last(
    settings: Settings, zone: str, day: str, first: str, last: str
) -> None:
    settings.TIME_ZONE = zone
    assert parse_start(day) == utc(first)
    assert parse_end(day) == utc(last)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T18:00", "2026-03-01T10:00"),
        ("2026-03-01 18:00:30", "2026-03-01T10:00:30"),
        ("2026-03-01T18:00Z", "2026-03-01T18:00"),
        ("2026-03-01T18:00+05:30", "2026-03-01T12:30"),
        ("2026-03-01T00:00", "2026-02-28T16:00"),
        ("2026-03-01T23:59:59.999999Z", "2026-03-01T23:59:59.999999"),
    ],
)
def test_a_date_with_a_time_is_local_unless_it_names_a_time_zone(
    settings: Settings, text: str, moment: str
) -> None:
    settings.TIME_ZONE = "Asia/Kuala_Lumpur"
    assert parse_start(text) == parse_end(text) == utc(moment)
    assert parse_start(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2026", "2026-02-30", "31.12.2026", "12/31/2026", "2026-03-01T25:00"),
        *("0001-01-01T00:00", "9999-12-31T23:59Z", "9999-12-31T23:59-05:00", "10000-01-01"),
        "2026-03-01T10:00Europe/Rome",
    ],
)
def test_a_malformed_date_is_refused_with_an_example(settings: Settings, text: str) -> None:
    settings.TIME_ZONE = "Asia/Kuala_Lumpur"
    for read in (parse_start, parse_end):
        with pytest.raises(ArgumentTypeError, match=r"is not a date. Write 2027-12-31, ") as fault:
            read(text)
        assert "(in Asia/Kuala_Lumpur)" in str(fault.value)
