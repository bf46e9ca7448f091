"""What other programs read of ours: the collections, and the programs in ABAP and C#.

Bruno's own runner is too large to be installed for a test (500 packages). Its parser reads the
files, and they are compared with Postman's requests, which are really sent.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoDbBlocker

from identity.developers.collections.bruno import bruno_files
from identity.sandbox.catalogue import CLIENTS
from tests.developers.collection import (
    NOT_SENT_BY_ITSELF,
    SECRETS,
    VARIABLES,
    collection,
    items,
    sent,
)
from tests.servers.npm import install_locked
from tests.servers.service import Service

TIN, AGENT = "C8888888821", "C8888888822"
SECONDS = 60.0

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def postman() -> dict[str, Any]:
    return collection()


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "readers"
    return install_locked(source, tmp_path_factory.mktemp("readers") / "node")


def run(readers: Path, program: str, given: str) -> Any:
    """What a program of ours prints for what is given on its standard input."""
    done = subprocess.run(
        ["node", program],
        input=given,
        cwd=readers,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# --- As the programs read them --------------------------------------------------------------------


def test_postmans_schema_finds_no_fault(readers: Path, postman: dict[str, Any]) -> None:
    assert run(readers, "faults_of_postman.js", json.dumps(postman)) == []
    wrong = {"variable": [{"key": "client_secret", "type": "secret"}]}
    (fault,) = run(readers, "faults_of_postman.js", json.dumps(postman | wrong))
    assert fault["instancePath"] == "/variable/0/type"


def test_bruno_reads_the_same_requests(readers: Path, postman: dict[str, Any]) -> None:
    files = bruno_files(settings.AUTH_URL)
    in_bru = {path: text for path, text in files.items() if path.endswith(".bru")}
    parsed = run(readers, "parse_bruno.js", json.dumps(in_bru))
    variables = parsed.pop(f"environments/{settings.ENVIRONMENT}.bru")["variables"]
    assert {variable["name"] for variable in variables} == VARIABLES
    assert {variable["name"] for variable in variables if variable["secret"]} == SECRETS
    folders = {
        path.partition("/")[0]: file["meta"]["name"]
        for path, file in parsed.items()
        if path.endswith("/folder.bru")
    }
    requests = [
        (folders[path.partition("/")[0]], file)
        for path, file in parsed.items()
        if not path.endswith(("folder.bru", "collection.bru"))
    ]
    assert [as_bruno_reads(*request) for request in requests] == [
        as_postman_has(*item) for item in items(postman)
    ]


def as_bruno_reads(folder: str, file: dict[str, Any]) -> dict[str, Any]:
    def enabled(pairs: list[dict[str, Any]]) -> dict[str, str]:
        return {pair["name"]: pair["value"] for pair in pairs if pair["enabled"]}

    params = file.get("params", [])
    return {
        "folder": folder,
        "name": file["meta"]["name"],
        "method": file["http"]["method"].upper(),
        "url": file["http"]["url"],
        "token": file.get("auth", {}).get("bearer", {}).get("token", ""),
        "headers": enabled(file.get("headers", [])),
        "form": enabled(file.get("body", {}).get("formUrlEncoded", [])),
        "path": enabled([param for param in params if param["type"] == "path"]),
        "query": [param["name"] for param in params if param["type"] == "query"],
        "checks": re.findall(r"\[[\d, ]+\]|/errors/\w+", file.get("tests", "")),
        "stores": "access_token" in file.get("script", {}).get("res", ""),
    }


def as_postman_has(folder: str, item: dict[str, Any]) -> dict[str, Any]:
    request = item["request"]
    script = "\n".join(line for event in item.get("event", ()) for line in event["script"]["exec"])
    return {
        "folder": folder,
        "name": item["name"],
        "method": request["method"],
        "url": request["url"]["raw"],
        "token": request["auth"].get("bearer", [{"value": ""}])[0]["value"],
        "headers": sent(request["header"]),
        "form": sent(request.get("body", {}).get("urlencoded", [])),
        "path": sent(request["url"].get("variable", [])),
        "query": [pair["key"] for pair in request["url"].get("query", [])],
        "checks": re.findall(r"\[[\d, ]+\]|/errors/\w+", script),
        "stores": "access_token" in script,
    }


@pytest.fixture(scope="module")
def given(node: Service, django_db_blocker: DjangoDbBlocker) -> dict[str, str]:
    """What a developer enters: an intermediary's client, and a protected API."""
    with django_db_blocker.unblock():  # of the service that runs
        for tin in (TIN, AGENT):
            node.manage("register_taxpayer", tin, "--name", "Company")
        node.manage("register_intermediary", AGENT)
        parties = ("--taxpayer", TIN, "--intermediary", AGENT)
        node.manage("grant_permission", *parties, "--permission", "documents:view")
        client = node.manage("issue_credentials", AGENT, "--name", "Collections")
        api = node.manage("register_protected_api", "Collections", "--audience", "InvoicingAPI")
        node.manage("sandbox")
    return {
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "onbehalfof": TIN,
        "api_client_id": api["client_id"],
        "api_client_secret": api["client_secret"],
    }


def test_newman_sends_every_request_to_the_service_and_gets_what_is_expected(
    readers: Path, node: Service, given: dict[str, str], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *("node", "node_modules/newman/bin/newman.js", "run", f"{node.url}/postman.json"),
            *("--reporters", "json", "--reporter-json-export", str(report)),
            *(part for name, text in given.items() for part in ("--env-var", f"{name}={text}")),
        ],
        cwd=readers,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    ran = json.loads(report.read_text())["run"]
    assert ran["failures"] == []
    assert ran["stats"]["assertions"]["total"] == len(CLIENTS)
    statuses = [(e["item"]["name"], e["response"]["code"]) for e in ran["executions"]]
    of_sandbox = {client.name.value for client in CLIENTS}
    for name, status in statuses:
        if name in NOT_SENT_BY_ITSELF:
            assert status != 200, name
        elif name not in of_sandbox:  # those are checked by the collection itself
            assert status == 200, name
    assert of_sandbox < {name for name, _status in statuses}


# --- Programs that cannot be run here -------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "reader", "right", "wrong"),
    [
        ("z_token_client.abap", "faults_of_abap.cjs", "ENDDO.", "ENDO."),
        (
            "z_token_client.abap",
            "faults_of_abap.cjs",
            "answer-error_description",
            "answr-error_description",
        ),
        ("TokenClient.cs", "faults_of_csharp.js", "return body;", "return body"),
    ],
)
def test_a_program_is_of_its_language(
    readers: Path, file: str, reader: str, right: str, wrong: str
) -> None:
    text = Client().get(f"/developers/{file}").content.decode()
    assert run(readers, reader, text) == []
    assert right in text
    assert run(readers, reader, text.replace(right, wrong)) != []
