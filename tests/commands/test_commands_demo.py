"""`demo`: from nothing to tokens by pasted curl lines, and nothing made twice (contract 6)."""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from identity.demo.saved_credentials import SavedCredentials, read_saved_credentials
from tests.support.command_line import manage
from tests.support.servers import CHECKOUT, free_port, service_environment

Environment = dict[str, str]


@pytest.fixture
def fresh(own_process: None, tmp_path: Path) -> Environment:
    """The environment of a machine on which nothing was set up; `AUTH_URL` follows the port."""
    environment = service_environment(tmp_path / "var", free_port())
    del environment["AUTH_URL"]
    return environment


@pytest.fixture(scope="module")
def first_run(
    own_process: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Environment, dict[str, Any]]:
    environment = service_environment(tmp_path_factory.mktemp("demo") / "var", free_port())
    del environment["AUTH_URL"]
    return environment, prepared(environment)


@pytest.fixture
def first(first_run: tuple[Environment, dict[str, Any]]) -> dict[str, Any]:
    """What the first run of the demo answered."""
    return first_run[1]


@pytest.fixture
def again(first_run: tuple[Environment, dict[str, Any]], tmp_path: Path) -> Environment:
    """The environment of a machine on which the demo ran once: a copy for this test alone."""
    var = shutil.copytree(first_run[0]["VAR_DIR"], tmp_path / "var")
    return first_run[0] | {"VAR_DIR": str(var)}


def prepared(environment: Environment) -> dict[str, Any]:
    """What the demo made or found, without serving it."""
    code, out, err = manage(environment, "demo", "--no-serve", "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def sql(environment: Environment, statement: str) -> list[Any]:
    """The rows that the statement finds in the demo's database, which is changed by it."""
    with contextlib.closing(sqlite3.connect(f"{environment['VAR_DIR']}/identity.sqlite3")) as db:
        rows = db.execute(statement).fetchall()
        db.commit()
        return rows


def counts(environment: Environment) -> dict[str, int]:
    tables = (
        *("taxpayers", "intermediaries", "granted_permissions", "system_users"),
        *("client_secrets", "changes", "auth_user"),
    )
    return {t: sql(environment, f"SELECT count(*) FROM {t}")[0][0] for t in tables}  # noqa: S608


def login(line: str) -> httpx.Response:
    """Sends what the curl line would send."""
    program, url, *rest = shlex.split(line)
    assert program == "curl"
    options = list(zip(rest[::2], rest[1::2], strict=True))
    headers = [tuple(value.split(": ", 1)) for option, value in options if option == "-H"]
    form = dict(value.split("=", 1) for option, value in options if option == "-d")
    return httpx.post(url, data=form, headers=dict(headers))  # type: ignore[arg-type]


def may_sign_in(page: str, user: str, password: str) -> bool:
    with httpx.Client(follow_redirects=True) as browser:
        form = browser.get(page)
        fields = {
            "login": user,
            "password": password,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        browser.post(form.url, data=fields)
        return "sessionid" in browser.cookies


@contextlib.contextmanager
def serving(
    environment: Environment, log: Path, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *arguments],
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


def test_the_pasted_curl_lines_give_tokens_and_the_staff_can_sign_in(
    fresh: Environment, tmp_path: Path
) -> None:
    with serving(fresh, tmp_path / "log") as process:
        assert process.stdout
        text = ""
        for line in process.stdout:
            text += line
            if line.startswith("More on the same data"):
                break
        base = f"http://127.0.0.1:{fresh['PORT']}"
        as_taxpayer, on_behalf = (line for line in text.splitlines() if line.startswith("curl"))
        assert f"The token service is at {base}\n" in text
        # Written once the service answers, so they work as soon as they can be pasted.
        for line in (as_taxpayer, on_behalf):
            answer = login(line)
            assert answer.status_code == 200, answer.text
            assert answer.json()["token_type"] == "Bearer"
        assert on_behalf.endswith(" -H 'onbehalfof: C1234567890'")
        (staff,) = (line for line in text.splitlines() if line.startswith("Staff: "))
        _, page, _, user, _, password = staff.split()
        assert (
            staff
            == f"Staff: http://localhost:{fresh['PORT']}/admin/  user {user}  password {password}"
        )
        assert may_sign_in(page, user, password)
        process.send_signal(signal.SIGTERM)
        assert process.wait(25) == 0


def test_the_answer_for_machines_is_one_object_and_its_addresses_follow_the_port(
    again: Environment, tmp_path: Path
) -> None:
    port = free_port()
    with serving(again, tmp_path / "log", "--json", "--port", str(port)) as process:
        assert process.stdout
        text = ""
        for line in process.stdout:
            text += line
            if line == "}\n":
                break
        answer = json.loads(text)
        base = f"http://127.0.0.1:{port}"
        assert answer["auth_url"] == base
        assert answer["token_endpoint"] == f"{base}/connect/token"
        assert answer["admin_url"] == f"http://localhost:{port}/admin/"
        assert answer["intermediary"]["onbehalfof"] == answer["taxpayer"]["tin"]
        token = login(answer["curl"]["intermediary"]).json()["access_token"]
        assert jwt.decode(token, options={"verify_signature": False})["iss"] == base


def test_another_shell_knows_the_demos_address_as_long_as_it_runs(
    again: Environment, first: dict[str, Any], tmp_path: Path
) -> None:
    shell = {name: value for name, value in again.items() if name != "PORT"}
    names = itertools.count()

    def told(**settings: str) -> str:
        command = ("issue_credentials", first["taxpayer"]["tin"], "--name", f"{next(names)}")
        code, out, err = manage(shell | settings, *command, "--json")
        assert (code, err) == (0, "")
        return str(json.loads(out)["token_endpoint"])

    usual = "http://127.0.0.1:8000/connect/token"
    assert told() == usual
    port = free_port()
    with serving(again, tmp_path / "log", "--json", "--port", str(port)) as process:
        assert process.stdout
        assert "}\n" in process.stdout
        assert told() == f"http://127.0.0.1:{port}/connect/token"
        # What is message in this shell itself counts more.
        assert told(PORT="8200") == "http://127.0.0.1:8200/connect/token"
        assert told(AUTH_URL="https://id.example.org") == "https://id.example.org/connect/token"
        process.send_signal(signal.SIGTERM)
        assert process.wait(25) == 0
    assert told() == usual


def test_an_address_set_in_the_demos_shell_is_known_in_another(
    again: Environment, tmp_path: Path
) -> None:
    shell = {name: value for name, value in again.items() if name != "PORT"}
    demo = again | {"AUTH_URL": "http://demo.example.org:81"}
    show = (
        "shell",
        "--no-imports",
        "-c",
        "from django.conf import settings as s; print(s.AUTH_URL)",
    )
    with serving(demo, tmp_path / "log", "--json", "--port", str(free_port())) as process:
        assert process.stdout
        assert "}\n" in process.stdout
        assert manage(shell, *show)[1] == "http://demo.example.org:81\n"
    # Killed, as with a power cut: nothing could be tidied up.
    assert manage(shell, *show)[1] == "http://127.0.0.1:8000\n"


def test_nothing_is_made_twice_also_by_two_that_start_at_once(fresh: Environment) -> None:
    command = [sys.executable, "manage.py", "demo", "--no-serve", "--json"]
    both = [
        subprocess.Popen(command, cwd=CHECKOUT, env=fresh, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    first, second = (json.loads(process.communicate(timeout=120)[0]) for process in both)
    made = counts(fresh)
    assert first == second == prepared(fresh)
    assert counts(fresh) == made
    sample = sql(
        fresh,
        "SELECT u.name, count(*) FROM system_users u JOIN client_secrets s"
        " ON s.system_user_id = u.id WHERE u.name LIKE 'Demo%' GROUP BY u.name",
    )
    assert sorted(sample) == [("Demo ERP", 1), ("Demo intermediary ERP", 1)]
    assert made["auth_user"] == 1
    kept = Path(fresh["VAR_DIR"]) / "demo.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_demo_runs_on_postgresql_too_and_makes_the_folder_of_its_file(
    fresh: Environment, empty_postgres_url: str
) -> None:
    environment = fresh | {"DATABASE_URL": empty_postgres_url}
    assert prepared(environment) == prepared(environment)


def test_lost_credentials_are_replaced_and_the_old_ones_work_no_more(
    again: Environment, first: dict[str, Any]
) -> None:
    (Path(again["VAR_DIR"]) / "demo.json").unlink()
    second = prepared(again)
    for who in ("taxpayer", "intermediary"):
        assert second[who]["client_id"] == first[who]["client_id"]
        assert second[who]["client_secret"] != first[who]["client_secret"]
    live = sql(
        again,
        "SELECT s.hint FROM client_secrets s JOIN system_users u ON u.id = s.system_user_id"
        " WHERE u.name LIKE 'Demo%' AND s.slot IS NOT NULL",
    )
    assert {hint for (hint,) in live} == {
        second[who]["client_secret"][-4:] for who in ("taxpayer", "intermediary")
    }
    assert second["staff"] == {"username": "admin", "password": None}


def test_what_staff_changed_stays_as_they_left_it(
    again: Environment, first: dict[str, Any]
) -> None:
    sql(again, "UPDATE system_users SET blocked_at=created, blocked_by='x', blocked_reason='x'")
    sql(again, "UPDATE granted_permissions SET revoked_at = created_at")
    sql(again, "UPDATE taxpayers SET name = 'Renamed'")
    sql(again, "UPDATE auth_user SET password = 'another'")
    made = counts(again)
    code, out, err = manage(again, "demo", "--no-serve")
    assert (code, err) == (0, "")
    assert counts(again) == made
    assert first["curl"]["taxpayer"] in out
    assert "password changed since; manage.py changepassword admin" in out


@pytest.mark.parametrize(
    "content",
    [
        *(None, "", "{", "[]", "null", '{"taxpayer": {}}', '{"taxpayer": 1, "intermediary": 2}'),
        '{"taxpayer": {"client_id": "a", "client_secret": "b"}}',
    ],
)
def test_a_file_that_is_not_whole_keeps_nothing(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "demo.json"
    if content is not None:
        path.write_text(content)
    assert read_saved_credentials(path) == SavedCredentials()


def test_a_port_in_use_is_one_line_and_nothing_is_made(fresh: Environment) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(fresh["PORT"])))
        taken.listen()
        code, out, err = manage(fresh, "demo")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"Port {fresh['PORT']} is in use, perhaps by this service already.")
    assert not (Path(fresh["VAR_DIR"]) / "demo.json").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_one_line(fresh: Environment, port: str) -> None:
    code, out, err = manage(fresh, "demo", f"--port={port}")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert port in err


def test_the_demo_never_touches_a_live_service(fresh: Environment) -> None:
    code, out, err = manage({**fresh, "ENVIRONMENT": "live"}, "demo", "--no-serve")
    assert (code, out) == (1, "")
    assert err == "The demo makes sample data: it runs with ENVIRONMENT=test only.\n"
    assert not (Path(fresh["VAR_DIR"]) / "demo.json").exists()
