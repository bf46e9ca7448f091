"""The programs of the home page, as a developer downloads them, at the service as it runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from clientcheck import clientcheck
from clientcheck.clientcheck import (
    CLIENT_ID,
    NEW_SECRET,
    PASS,
    REPRESENTED,
    SECRET,
    Answer,
    Authority,
    Fault,
    Finding,
    Request,
    Server,
    check,
)
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES, SNIPPETS
from tests.developers.test_pages import page_of
from tests.servers.npm import install_locked
from tests.servers.processes import CHECKOUT, NotAvailable, completed
from tests.servers.service import Service

TIN, INTERMEDIARY = "C8888888811", "C8888888812"
SECONDS = 240.0
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
    return completed(command, input=given, timeout=SECONDS, **options)


def run(folder: Path, file: str, url: str, **environment: str) -> Ran:
    if shutil.which(COMMANDS[file][0]) is None:
        raise NotAvailable(f"{COMMANDS[file][0]} is not installed")
    text = downloaded(file)
    assert text.count(AUTH_URL_OF_THE_FILES) == 1
    path = folder / file
    path.write_text(text.replace(AUTH_URL_OF_THE_FILES, url), encoding="utf-8")
    known = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return ran(*COMMANDS[file], str(path), cwd=folder, env={**known, **environment})


@pytest.fixture(scope="module")
def client(node: Service) -> Mapping[str, str]:
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
    first, second = map(json.loads, done.stdout.strip().splitlines())
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


class Paced(Authority):
    """The client check in three minutes: a call of an API takes a while, as it does elsewhere."""

    def _call(self, request: Request) -> Answer:
        return super()._call(request)._replace(delay=0.2)


@pytest.mark.processes
def test_each_program_passes_the_client_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once. When its secret has ended, a program says so and ends; it starts with a new."""
    for name in ("RETRY_AFTER", "RETRY_UNAVAILABLE", "SLOW"):
        monkeypatch.setattr(clientcheck, name, 2)
    monkeypatch.setattr(clientcheck, "MOST_WAITING", 1)

    def checked(file: str) -> tuple[list[Finding], list[str]]:
        plan = {3: Fault.SLOW, 4: Fault.CUT, 6: Fault.LIMIT, 8: Fault.DOWN, 12: Fault.SKEW}
        authority = Paced(token_seconds=30, plan=plan, rotate_after=14, end_secret_after=16)
        who = {"CLIENT_ID": CLIENT_ID, "ONBEHALFOF": " ".join(REPRESENTED)}
        with Server(0, authority) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ended = run(tmp_path, file, authority.url, **who, CLIENT_SECRET=SECRET, CALLS="9999")
            again = run(tmp_path, file, authority.url, **who, CLIENT_SECRET=NEW_SECRET)
            server.shutdown()
        assert (ended.returncode, again.returncode) == (1, 0), (file, ended.stderr, again.stderr)
        log = "".join(done.stdout + done.stderr for done in (ended, again))
        accepted = [call.token for call in authority.calls if call.token and call.status == 200]
        return check(authority, log), [token.subject for token in accepted]

    with ThreadPoolExecutor() as pool:
        for file, (findings, subjects) in zip(COMMANDS, pool.map(checked, COMMANDS), strict=True):
            wrong = {one.name: one.seen for one in findings if one.state != PASS}
            # Its calls name no taxpayer, and are for one and the other in turn, from each start.
            assert wrong.keys() == {"each call has the token of its taxpayer"}, (file, wrong)
            assert set(subjects) == set(REPRESENTED), file
            assert sum(one == next_ for one, next_ in pairwise(subjects)) <= 1, file


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


def test_the_programs_have_the_address_of_this_service(settings: Any) -> None:
    settings.AUTH_URL = "https://id.example.org"
    for snippet in SNIPPETS:
        text = downloaded(snippet.file)
        assert text.count("https://id.example.org") == 1
        assert AUTH_URL_OF_THE_FILES not in text
    page = page_of("/")
    assert "https://id.example.org/connect/token" in page
    assert "127.0.0.1" not in page
