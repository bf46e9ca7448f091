"""The programs of the home page, as a developer downloads them, at the service as it runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoDbBlocker

from identity.developers.examples import issued_example, refused_example
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES, SNIPPETS, Snippet
from tests.developers.pages import page_of
from tests.servers.processes import NotAvailable
from tests.servers.service import Service
from tokens.refusals.table import ProtocolReason

TIN, INTERMEDIARY = "C8888888811", "C8888888812"
SECONDS = 60.0
# How each is run here. C# and ABAP are only parsed, in test_readers.py: their tools cannot be had.
COMMANDS = {
    "token_client.sh": ("sh",),
    "token_client.py": (sys.executable, "-W", "error"),
    "token_client.mjs": ("node",),
    "TokenClient.java": ("java",),
    "token_client.php": ("php",),
}
every_program = pytest.mark.parametrize("file", COMMANDS)


@dataclass
class Ran:
    """How a program ended."""

    code: int
    shown: str
    error: str


@pytest.fixture(autouse=True)
def _program_is_installed(request: pytest.FixtureRequest) -> None:
    callspec = getattr(request.node, "callspec", None)
    command = COMMANDS.get(callspec.params.get("file")) if callspec else None
    if command and shutil.which(command[0]) is None:
        raise NotAvailable(f"{command[0]} is not installed")


def run(folder: Path, file: str, url: str, **environment: str) -> Ran:
    """The program as it is downloaded from the service at `url`."""
    downloaded = httpx.get(f"{url}/developers/{file}")
    assert downloaded.status_code == 200
    return run_text(folder, file, downloaded.text, **environment)


def run_text(folder: Path, file: str, text: str, **environment: str) -> Ran:
    path = folder / file
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*COMMANDS[file], str(path)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def issued(node: Service, django_db_blocker: DjangoDbBlocker) -> dict[str, dict[str, str]]:
    with django_db_blocker.unblock():  # of the service that runs
        for tin in (TIN, INTERMEDIARY):
            node.manage("register_taxpayer", tin, "--name", "Company")
        node.manage("register_intermediary", INTERMEDIARY)
        parties = ("--taxpayer", TIN, "--intermediary", INTERMEDIARY)
        node.manage("grant_permission", *parties, "--permission", "documents:submit")
        found = {}
        for tin in (TIN, INTERMEDIARY):
            made = node.manage(
                "issue_credentials", tin, "--name", "ERP", "--logins-per-minute", "0"
            )
            names = ("client_id", "client_secret")
            found[tin] = {name.upper(): made[name] for name in names}
    return found


@every_program
def test_a_program_logs_in_and_uses_one_token_for_two_calls(
    node: Service, issued: dict[str, dict[str, str]], tmp_path: Path, file: str
) -> None:
    ran = run(tmp_path, file, node.url, **issued[TIN])
    assert (ran.code, ran.error) == (0, "")
    answers = ran.shown.replace("}{", "}\n{").split("\n")
    first, second = (json.loads(answer) for answer in answers if answer)
    assert first == second
    assert (first["subject"], first["actor"]) == (TIN, None)


@every_program
def test_a_program_acts_for_another_taxpayer(
    node: Service, issued: dict[str, dict[str, str]], tmp_path: Path, file: str
) -> None:
    ran = run(tmp_path, file, node.url, **issued[INTERMEDIARY], ONBEHALFOF=TIN)
    assert (ran.code, ran.error) == (0, "")
    answer = json.loads(ran.shown.replace("}{", "}\n{").split("\n")[0])
    assert (answer["subject"], answer["actor"]) == (TIN, INTERMEDIARY)


@every_program
def test_a_program_shows_why_it_was_refused(
    node: Service, issued: dict[str, dict[str, str]], tmp_path: Path, file: str
) -> None:
    ran = run(tmp_path, file, node.url, **issued[INTERMEDIARY], ONBEHALFOF="C0000000001")
    assert ran.code == 1
    assert "The represented taxpayer must grant it. Reference: " in ran.error
    assert issued[INTERMEDIARY]["CLIENT_SECRET"] not in ran.error + ran.shown


@every_program
@pytest.mark.parametrize("missing", ["CLIENT_ID", "CLIENT_SECRET"])
def test_a_program_without_credentials_names_what_is_missing(
    node: Service, issued: dict[str, dict[str, str]], tmp_path: Path, file: str, missing: str
) -> None:
    given = {name: value for name, value in issued[TIN].items() if name != missing}
    ran = run(tmp_path, file, node.url, **given)
    assert ran.code != 0
    assert missing in ran.error


def test_the_lines_to_try_in_a_shell_work_as_they_are_shown(
    node: Service, issued: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    page = unescape(httpx.get(f"{node.url}/").text)
    to_log_in, to_ask = re.findall(r"<code>(curl .*?)</code>", page, re.DOTALL)
    environment = {"PATH": os.environ["PATH"], **issued[TIN]}

    def shown(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    assert "TOKEN" in shown(to_ask).stderr  # it is not set yet
    environment["TOKEN"] = json.loads(shown(to_log_in).stdout)["access_token"]
    assert json.loads(shown(to_ask).stdout)["subject"] == TIN


# --- 429 and 503 ----------------------------------------------------------------------------------


@dataclass
class BusyService:
    """Answers the first logins with refusals, and counts them; its answers are the documented."""

    refusals: list[tuple[int, str]]
    logins: list[str | None] = field(default_factory=list)


@contextmanager
def serve(busy: BusyService) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            busy.logins.append(self.headers["onbehalfof"])
            if busy.refusals:
                status, body = busy.refusals.pop(0)
                self.answer(status, body, {"Retry-After": "1"})
            else:
                self.answer(200, issued_example("").body, {})

        def do_GET(self) -> None:
            self.answer(200, json.dumps({"token": self.headers["Authorization"]}), {})

        def answer(self, status: int, body: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            encoded = body.replace("…", "").encode()
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@every_program
def test_a_program_waits_as_long_as_it_is_told_and_logs_in_once_for_all_calls(
    tmp_path: Path, file: str
) -> None:
    refused = [
        (example.status, example.body)
        for reason in (ProtocolReason.RATE_LIMITED, ProtocolReason.TEMPORARILY_UNAVAILABLE)
        for example in [refused_example(reason, settings.AUTH_URL)]
    ]
    busy = BusyService(refused)
    (snippet,) = (each for each in SNIPPETS if each.file == file)
    with serve(busy) as url:
        ran = run_text(tmp_path, file, text_for(snippet, url), CLIENT_ID="a", CLIENT_SECRET="b")
    assert ran.code == 0, ran.error
    # Twice refused, then a token; two calls with it.
    assert busy.logins == [None] * 3
    token = json.loads(issued_example("").body)["access_token"].replace("…", "")
    assert ran.shown.count(f"Bearer {token}") == 2


def text_for(snippet: Snippet, url: str) -> str:
    downloaded = Client().get(f"/developers/{snippet.file}").content.decode()
    assert settings.AUTH_URL == AUTH_URL_OF_THE_FILES
    assert downloaded.count(AUTH_URL_OF_THE_FILES) == 1
    return downloaded.replace(AUTH_URL_OF_THE_FILES, url)


# --- On the page ----------------------------------------------------------------------------------


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_the_page_shows_each_program_whole_and_offers_it_to_download(snippet: Snippet) -> None:
    page = page_of("/")
    downloaded = Client().get(f"/developers/{snippet.file}")
    assert downloaded["Content-Type"] == "text/plain; charset=utf-8"
    assert f"<code>{downloaded.content.decode()}</code></pre>" in page
    assert f'href="/developers/{snippet.file}" download>' in page
    # Each is shown by its own tab.
    assert f'id="tab-{snippet.id}"' in page
    style = Client().get("/developers/style.css").content.decode()
    assert f".tabs:has(#tab-{snippet.id}:checked) .panel-{snippet.id}" in style


def test_the_programs_have_the_address_of_this_service(settings: Any) -> None:
    settings.AUTH_URL = "https://id.example.org"
    for snippet in SNIPPETS:
        text = Client().get(f"/developers/{snippet.file}").content.decode()
        assert text.count("https://id.example.org") == 1
        assert AUTH_URL_OF_THE_FILES not in text
    page = page_of("/")
    assert "https://id.example.org/connect/token" in page
    assert "127.0.0.1" not in page


@pytest.mark.parametrize("name", ["", "nothing", "catalogue.py", "..", "%2e%2e%2fhome.py"])
def test_no_other_file_can_be_downloaded(name: str) -> None:
    assert Client().get(f"/developers/{name}").status_code == 404
