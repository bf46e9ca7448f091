"""The programs of the home page, as a developer downloads them, at the service as it runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES, SNIPPETS
from tests.developers.pages import page_of
from tests.servers.npm import install_locked
from tests.servers.processes import CHECKOUT, NotAvailable
from tests.servers.service import Service
from tokens.refusals.table import ProtocolReason

TIN, INTERMEDIARY = "C8888888811", "C8888888812"
SECONDS = 60.0
# How each is run here. C# and ABAP are only parsed, below: their tools cannot be had.
COMMANDS = {
    "token_client.sh": ("sh",),
    "token_client.py": (sys.executable, "-W", "error"),
    "token_client.mjs": ("node",),
    "TokenClient.java": ("java",),
    "token_client.php": ("php",),
}
every_program = pytest.mark.parametrize("file", COMMANDS)
Ran = subprocess.CompletedProcess[str]


def downloaded(file: str) -> str:
    answer = Client().get(f"/developers/{file}")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    return answer.content.decode()


def ran(*command: str, given: str = "", **options: Any) -> Ran:
    return subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        **options,
    )


def run(folder: Path, file: str, url: str, **environment: str) -> Ran:
    """The program with another address of the service, and with what a developer enters."""
    if shutil.which(COMMANDS[file][0]) is None:
        raise NotAvailable(f"{COMMANDS[file][0]} is not installed")
    text = downloaded(file)
    assert text.count(AUTH_URL_OF_THE_FILES) == 1
    path = folder / file
    path.write_text(text.replace(AUTH_URL_OF_THE_FILES, url), encoding="utf-8")
    known = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return ran(*COMMANDS[file], str(path), cwd=folder, env={**known, **environment})


@pytest.fixture(scope="module")
def client(node: Service, django_db_blocker: DjangoDbBlocker) -> Mapping[str, str]:
    """The credentials of an intermediary, which may act for one taxpayer."""
    with django_db_blocker.unblock():  # of the service that runs
        for tin in (TIN, INTERMEDIARY):
            node.manage("register_taxpayer", tin, "--name", "Company")
        node.manage("register_intermediary", INTERMEDIARY)
        parties = ("--taxpayer", TIN, "--intermediary", INTERMEDIARY)
        node.manage("grant_permission", *parties, "--permission", "documents:submit")
        limit = ("--logins-per-minute", "0")
        issued = node.manage("issue_credentials", INTERMEDIARY, "--name", "ERP", *limit)
        node.manage("sandbox")
    return {name.upper(): issued[name] for name in ("client_id", "client_secret")}


@every_program
def test_a_program_acts_for_another_taxpayer_with_one_token_for_two_calls(
    node: Service, client: Mapping[str, str], tmp_path: Path, file: str
) -> None:
    done = run(tmp_path, file, node.url, **client, ONBEHALFOF=TIN)
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.replace("}{", "}\n{").split("\n")
    first, second = (json.loads(answer) for answer in answers if answer)
    assert first == second
    assert (first["subject"], first["actor"]) == (TIN, INTERMEDIARY)


@every_program
def test_a_program_shows_why_it_was_refused(
    node: Service, client: Mapping[str, str], tmp_path: Path, file: str
) -> None:
    done = run(tmp_path, file, node.url, **client, ONBEHALFOF="C0000000001")
    assert done.returncode == 1
    assert "The represented taxpayer must grant it. Reference: " in done.stderr
    assert client["CLIENT_SECRET"] not in done.stderr + done.stdout


@pytest.mark.gate
def test_the_lines_to_try_in_a_shell_work_as_they_are_shown(
    node: Service, client: Mapping[str, str]
) -> None:
    home, sandbox = (unescape(httpx.get(f"{node.url}/{page}").text) for page in ("", "sandbox"))
    assert "No credentials yet? Those of the client <code>works</code>" in home
    to_log_in, to_ask = re.findall(r"<code>(curl .*?)</code>", home, re.DOTALL)
    (of_sandbox,) = re.findall(r"<code>(curl .*?)</code>", sandbox, re.DOTALL)
    environment = {"PATH": os.environ["PATH"], **client}
    assert "TOKEN" in ran("sh", "-c", to_ask, env=environment).stderr  # it is not set yet
    lines = (of_sandbox, to_log_in)
    answers = [json.loads(ran("sh", "-c", line, env=environment).stdout) for line in lines]
    assert [answer["expires_in"] for answer in answers] == [3600, 3600]
    environment["TOKEN"] = answers[1]["access_token"]
    assert json.loads(ran("sh", "-c", to_ask, env=environment).stdout)["subject"] == INTERMEDIARY


# --- 429 and 503 ----------------------------------------------------------------------------------


@dataclass
class BusyService:
    """Answers the first logins with refusals, and counts them; its answers are the documented."""

    refusals: list[tuple[int, str]]
    logins: list[str | None] = field(default_factory=list)
    lifetime: int = 3600
    after: list[tuple[int, str]] = field(default_factory=list)  # of later logins; 0: no answer

    def next(self) -> tuple[int, str]:
        if self.refusals:
            return self.refusals.pop(0)
        self.refusals, self.after = self.after, []
        return 200, issued_example("").body.replace("3600", str(self.lifetime))


@contextmanager
def serve(busy: BusyService) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            busy.logins.append(self.headers["onbehalfof"])
            status, body = busy.next()
            if status:
                self.answer(status, body, {"Retry-After": "1"})

        def do_GET(self) -> None:
            if busy.lifetime < 60:  # until it is time to renew the token, which is not over
                time.sleep(0.92 * busy.lifetime)
                busy.lifetime = 3600
            self.answer(200, json.dumps({"token": self.headers["Authorization"]}), {})

        def answer(self, status: int, body: str, headers: dict[str, str]) -> None:
            encoded = body.replace("…", "").encode()
            more = {"Content-Type": "application/json", "Content-Length": str(len(encoded))}
            self.send_response(status)
            for name, value in {**more, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.processes
@every_program
def test_a_program_waits_as_long_as_it_is_told_and_logs_in_once_for_all_calls(
    tmp_path: Path, file: str
) -> None:
    examples = [
        refused_example(reason, settings.AUTH_URL)
        for reason in (ProtocolReason.RATE_LIMITED, ProtocolReason.TEMPORARILY_UNAVAILABLE)
    ]
    busy = BusyService([(example.status, example.body) for example in examples])
    with serve(busy) as url:
        done = run(tmp_path, file, url, CLIENT_ID="a", CLIENT_SECRET="b")
    assert done.returncode == 0, done.stderr
    # Twice refused, then a token for the client's own taxpayer; two calls with it.
    assert busy.logins == [None] * 3
    token = json.loads(issued_example("").body)["access_token"].replace("…", "")
    assert done.stdout.count(f"Bearer {token}") == 2


@pytest.mark.processes
@pytest.mark.parametrize("status", [0, 503])
def test_each_program_goes_on_with_its_token_while_the_service_is_away(
    tmp_path: Path, status: int
) -> None:
    """All at once: each waits for the last moments of its token."""
    example = refused_example(ProtocolReason.TEMPORARILY_UNAVAILABLE, settings.AUTH_URL)
    files = [file for file in COMMANDS if file != "token_client.sh"]

    def logins_of(file: str) -> tuple[Ran, list[str | None]]:
        busy = BusyService([], lifetime=8, after=[(status, example.body)] * 9)
        with serve(busy) as url:
            return run(tmp_path, file, url, CLIENT_ID="a", CLIENT_SECRET="b"), busy.logins

    with ThreadPoolExecutor() as pool:
        for file, (done, logins) in zip(files, pool.map(logins_of, files), strict=True):
            assert done.returncode == 0, (file, done.stderr)
            assert logins == [None] * 2, f"{file} tried to renew the token once, in time"
            assert done.stdout.count("Bearer ") == 2


# --- Programs that cannot be run here -------------------------------------------------------------


@pytest.fixture(scope="module")
def parsers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = CHECKOUT / "tests" / "real_clients" / "node"
    return install_locked(source, tmp_path_factory.mktemp("parsers") / "node")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "parser", "right", "wrong"),
    [
        ("z_token_client.abap", "faults_of_abap.cjs", "ENDDO.", "ENDO."),
        ("z_token_client.abap", "faults_of_abap.cjs", "answer-error_desc", "answr-error_desc"),
        ("TokenClient.cs", "faults_of_csharp.js", "return stored.Token;", "return stored.Token"),
    ],
)
def test_a_program_is_of_its_language(
    parsers: Path, file: str, parser: str, right: str, wrong: str
) -> None:
    def faults_of(text: str) -> Any:
        done = ran("node", parser, given=text, cwd=parsers)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    text = downloaded(file)
    assert faults_of(text) == []
    assert right in text
    assert faults_of(text.replace(right, wrong)) != []


# --- On the page ----------------------------------------------------------------------------------


def test_the_programs_have_the_address_of_this_service(settings: Any) -> None:
    settings.AUTH_URL = "https://id.example.org"
    for snippet in SNIPPETS:
        text = downloaded(snippet.file)
        assert text.count("https://id.example.org") == 1
        assert AUTH_URL_OF_THE_FILES not in text
    page = page_of("/")
    assert "https://id.example.org/connect/token" in page
    assert "127.0.0.1" not in page
