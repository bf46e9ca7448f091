"""`demo`: from nothing to tokens with the printed curl lines, nothing made twice (contract 6)."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from django.conf import global_settings
from django.db import connections
from pytest_django import DjangoDbBlocker, Settings

from identity.demo.preparation import ISSUING, OWNERS, PORTAL
from identity.management_api import demo_scopes
from tests.servers.processes import CHECKOUT, free_port
from tests.servers.service import service_environment
from tests.support.command_line import manage, other_database, run
from tests.support.over_http import send_form
from tests.support.private import names, open_to_others

pytestmark = [pytest.mark.processes, pytest.mark.gate]

Environment = dict[str, str]


@dataclass(frozen=True)
class FirstRun:
    """Two demos that started at once from nothing: one served, the other made its data only."""

    environment: Environment
    text: str  # of the one that served
    log: str  # what it had logged until then
    logins: list[httpx.Response]  # of the curl lines in it
    staff_signed_in: bool
    exit_code: int  # of the one that served, after SIGTERM
    other: tuple[int, str, str]  # exit code, stdout and stderr of the other
    written: set[str]  # names of files
    opened: list[str]  # those that others could open


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    folder = tmp_path_factory.mktemp("demo")
    environment = service_environment(folder / "var", free_port())
    for name in ("AUTH_URL", "SECRET_KEY", "KEY_ENCRYPTION_KEYS"):
        del environment[name]  # so that it makes its own
    with serving(environment, folder / "log") as server:
        other = manage(environment, "demo", "--no-serve", "--json")
        text = read_until(server, "More commands on the same data")
        log = (folder / "log").read_text()
        logins = [login(line) for line in text.splitlines() if line.startswith("curl")]
        (staff,) = (line for line in text.splitlines() if line.startswith("Staff: "))
        _, page, _, user, _, password = staff.split()
        staff_signed_in = may_sign_in(page, user, password)
        written, opened = names(folder / "var"), open_to_others(folder / "var")
        server.send_signal(signal.SIGTERM)
        exit_code = server.wait(25)
    return FirstRun(
        environment, text, log, logins, staff_signed_in, exit_code, other, written, opened
    )


@pytest.fixture
def first(first_run: FirstRun) -> dict[str, Any]:
    code, out, err = first_run.other
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


@pytest.fixture
def in_process(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    django_db_blocker: DjangoDbBlocker,
    tmp_path: Path,
) -> Iterator[Path]:
    """Commands of this process find a machine on which nothing was set up; its `var` folder."""
    settings.VAR_DIR = tmp_path / "var"
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS  # those of the first run
    settings.PORT = free_port()
    settings.SCOPES = json.loads(demo_scopes())
    monkeypatch.setenv("PORT", str(settings.PORT))
    with django_db_blocker.unblock(), other_database("", tmp_path / "var"):
        yield tmp_path / "var"


@pytest.fixture
def again_in_process(first_run: FirstRun, in_process: Path, settings: Settings) -> Path:
    connections.close_all()
    shutil.copytree(first_run.environment["VAR_DIR"], in_process, dirs_exist_ok=True)
    settings.PORT = int(first_run.environment["PORT"])
    return in_process


def prepared() -> dict[str, Any]:
    code, out, err = run("demo", "--no-serve", "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def sql(var: Path, statement: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(var / "identity.sqlite3")) as db:
        rows = db.execute(statement).fetchall()
        db.commit()
        return rows


def counts(var: Path) -> dict[str, int]:
    tables = (
        *("taxpayers", "intermediaries", "granted_permissions", "system_users"),
        *("credentials", "changes", "auth_user"),
    )
    return {t: sql(var, f"SELECT count(*) FROM {t}")[0][0] for t in tables}  # noqa: S608


def login(line: str) -> httpx.Response:
    program, url, *rest = shlex.split(line)
    assert program == "curl"
    options = list(zip(rest[::2], rest[1::2], strict=True))
    headers = [tuple(value.split(": ", 1)) for option, value in options if option == "-H"]
    form = dict(value.split("=", 1) for option, value in options if option == "-d")
    return httpx.post(url, data=form, headers=dict(headers))  # type: ignore[arg-type]


def may_sign_in(page: str, user: str, password: str) -> bool:
    origin = page.removesuffix("/admin/")
    with httpx.Client(follow_redirects=True, base_url=origin) as browser:
        send_form(browser, "/signin/", origin, login=user, password=password)
        return "sessionid" in browser.cookies


@contextlib.contextmanager
def serving(
    environment: Environment, log: Path, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *arguments],
            umask=0,  # it hides nothing
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        assert process.stdout
        process.stdout.close()


def read_until(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith(beginning):
            break
    return text


def address_in_another_shell(environment: Environment, **settings: str) -> str:
    """AUTH_URL as a shell on the same data knows it; `PORT` is not set there."""
    shell = {name: value for name, value in environment.items() if name != "PORT"} | settings
    program = "from django.conf import settings; print(settings.AUTH_URL)"
    return manage(shell, "shell", "--no-imports", "-c", program)[1].strip()


def test_the_printed_curl_lines_give_tokens_and_the_staff_can_sign_in(first_run: FirstRun) -> None:
    port, lines = first_run.environment["PORT"], first_run.text.splitlines()
    assert f"The token service is at http://127.0.0.1:{port}\n" in first_run.text
    # Written once the service answers, so they work as soon as they can be pasted.
    assert [answer.status_code for answer in first_run.logins] == [200] * 4
    assert {answer.json()["token_type"] for answer in first_run.logins} == {"Bearer"}
    _as_taxpayer, on_behalf, *portal = (line for line in lines if line.startswith("curl"))
    assert on_behalf.endswith(" -H 'onbehalfof: C1234567890'")
    scopes = [answer.json()["scope"] for answer in first_run.logins[-len(portal) :]]
    assert scopes == [" ".join(PORTAL), *ISSUING]
    (staff,) = (line for line in lines if line.startswith("Staff: "))
    *_, user, _, password = staff.split()
    assert staff == f"Staff: http://localhost:{port}/admin/  user {user}  password {password}"
    assert first_run.staff_signed_in
    assert first_run.exit_code == 0
    assert first_run.log == ""  # before the curl lines


def test_the_demo_writes_only_for_its_owner(first_run: FirstRun) -> None:
    """What `make run` runs: migrations, keys, sample data, then the server."""
    assert first_run.opened == []
    database = {f"identity.sqlite3{end}" for end in ("", "-wal", "-shm")}
    assert database | {"secret_key", "key_encryption_keys", "demo.json"} <= first_run.written
    metrics = f"metrics-{first_run.environment['PORT']}"
    assert {"demo.address", "login-writers.lock", metrics, "static"} <= first_run.written
    assert any(name.endswith(".db") for name in first_run.written)  # counters of metrics


@pytest.mark.long
def test_the_answer_for_machines_follows_the_port_and_other_shells_know_the_address(
    first_run: FirstRun, first: dict[str, Any], tmp_path: Path
) -> None:
    var = shutil.copytree(first_run.environment["VAR_DIR"], tmp_path / "var")
    again = first_run.environment | {"VAR_DIR": str(var)}
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with serving(again, tmp_path / "log", "--json", "--port", str(port)) as process:
        answer = json.loads(read_until(process, "}\n"))
        assert answer["auth_url"] == base
        assert answer["token_endpoint"] == f"{base}/connect/token"
        assert answer["admin_url"] == f"http://localhost:{port}/admin/"
        assert answer["intermediary"]["onbehalfof"] == answer["taxpayer"]["tin"]
        token = login(answer["curl"]["intermediary"]).json()["access_token"]
        assert jwt.decode(token, options={"verify_signature": False})["iss"] == base

        shell = {name: value for name, value in again.items() if name != "PORT"}
        command = ("issue_credentials", first["taxpayer"]["tin"], "--name", "Another", "--json")
        code, out, err = manage(shell, *command)
        assert (code, err) == (0, "")
        assert json.loads(out)["token_endpoint"] == f"{base}/connect/token"
        # Settings of that shell itself come first.
        given = "https://id.example.org"
        assert address_in_another_shell(again, AUTH_URL=given) == given
    # Killed, as with a power cut: nothing could be tidied up.
    assert address_in_another_shell(again) == "http://127.0.0.1:8000"


def test_nothing_is_made_twice_also_by_two_that_start_at_once(
    first_run: FirstRun, first: dict[str, Any], again_in_process: Path
) -> None:
    made = counts(again_in_process)
    for line in first["curl"].values():
        assert f"\n{line}\n" in first_run.text
    staff = f"user {first['staff']['username']}  password {first['staff']['password']}\n"
    assert staff in first_run.text
    assert prepared() == first
    assert counts(again_in_process) == made
    sample = sql(
        again_in_process,
        "SELECT u.name, count(*) FROM system_users u JOIN credentials s"
        " ON s.system_user_id = u.id WHERE u.name LIKE 'Demo%' GROUP BY u.name",
    )
    assert [count for _name, count in sample] == [1] * 4
    assert made["auth_user"] == 1


@pytest.mark.long
def test_the_demo_runs_on_postgresql_too_and_makes_the_folder_of_its_file(
    empty_postgres_url: str, in_process: Path, settings: Settings
) -> None:
    settings.VAR_DIR = in_process / "not" / "there"
    with other_database(empty_postgres_url, in_process):
        assert prepared() == prepared()


def test_lost_credentials_are_replaced_and_the_old_ones_no_longer_work(
    again_in_process: Path, first: dict[str, Any]
) -> None:
    (again_in_process / "demo.json").unlink()
    second = prepared()
    for who in OWNERS:
        assert second[who]["client_id"] == first[who]["client_id"]
        assert second[who]["client_secret"] != first[who]["client_secret"]
    live = sql(
        again_in_process,
        "SELECT s.hint FROM credentials s JOIN system_users u ON u.id = s.system_user_id"
        " WHERE u.name LIKE 'Demo%' AND s.slot IS NOT NULL",
    )
    assert {hint for (hint,) in live} == {second[who]["client_secret"][-4:] for who in OWNERS}
    assert second["staff"] == {"username": "admin", "password": None}


def test_what_staff_changed_stays_as_they_left_it(
    again_in_process: Path, first: dict[str, Any]
) -> None:
    var = again_in_process
    sql(var, "UPDATE system_users SET blocked_at=created, blocked_by='x', blocked_reason='x'")
    sql(var, "UPDATE granted_permissions SET revoked_at = created_at")
    sql(var, "UPDATE taxpayers SET name = 'Renamed'")
    sql(var, "UPDATE auth_user SET password = 'another'")
    made = counts(var)
    code, out, err = run("demo", "--no-serve")
    assert (code, err) == (0, "")
    assert counts(var) == made
    assert first["curl"]["taxpayer"] in out
    assert "password changed since; manage.py changepassword admin" in out


def test_a_port_in_use_is_one_line_and_nothing_is_made(
    in_process: Path, settings: Settings
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings.PORT))
        taken.listen()
        code, out, err = run("demo")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"Port {settings.PORT} is in use, perhaps by this service already.")
    assert not list(in_process.iterdir())


def test_the_demo_never_touches_a_live_service(in_process: Path, settings: Settings) -> None:
    settings.ENVIRONMENT = "live"
    code, out, err = run("demo", "--no-serve")
    assert (code, out) == (1, "")
    assert err == "The demo creates sample data: it runs with ENVIRONMENT=test only.\n"
    assert not list(in_process.iterdir())
