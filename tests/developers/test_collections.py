"""The collections for Postman and Bruno: whole, valid, and sent to the service as it runs.

Bruno's own runner is too large to be installed for a test (500 packages). Its parser reads the
files, and they are compared with Postman's requests, which are really sent.
"""

import io
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoDbBlocker

from identity.developers.collections.bruno import FOLDER, bruno_files
from identity.developers.openapi.document import document
from identity.sandbox.catalogue import CLIENTS
from tests.developers.pages import page_of
from tests.servers.npm import install_locked
from tests.servers.service import Service

TIN, AGENT = "C8888888821", "C8888888822"
SECONDS = 60.0
NOT_SENT_BY_ITSELF = {"End a token before it expires", "End the secret that issued this token"}
VARIABLES = {
    *("base_url", "client_id", "client_secret", "onbehalfof", "access_token", "reference"),
    *("token_to_end", "api_client_id", "api_client_secret"),
}
SECRETS = {"client_secret", "api_client_secret"}


@pytest.fixture(scope="module")
def postman() -> dict[str, Any]:
    answer = Client().get("/postman.json")
    assert answer["Content-Type"] == "application/json"
    collection: dict[str, Any] = json.loads(answer.content)
    return collection


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "collection_readers"
    return install_locked(source, tmp_path_factory.mktemp("readers") / "node")


def run(readers: Path, program: str, given: Any) -> Any:
    """What a program of ours prints for what is given on its standard input."""
    done = subprocess.run(
        ["node", program],
        input=json.dumps(given),
        cwd=readers,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def items(postman: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each request, with the folder that it is in."""
    for folder in postman["item"]:
        yield from ((folder["name"], item) for item in folder["item"])


def named(postman: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (item for _folder, item in items(postman) if item["name"] == name)
    return found


def sent(pairs: list[dict[str, Any]]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in pairs if not pair.get("disabled")}


# --- What they contain ----------------------------------------------------------------------------


def test_every_described_request_but_that_of_files_is_in_it(postman: dict[str, Any]) -> None:
    described = {
        (method.upper(), path)
        for path, methods in document(settings.AUTH_URL)["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] != ["Files"]
    }
    contained = {
        (item["request"]["method"], re.sub(r":(\w+)", r"{\1}", url.removeprefix("{{base_url}}")))
        for _folder, item in items(postman)
        for url in [item["request"]["url"]["raw"]]
    }
    assert contained == described


def test_each_refusal_of_the_login_is_an_example_of_an_answer(postman: dict[str, Any]) -> None:
    examples = named(postman, "Log in: fetch an access token")["response"]
    described = document(settings.AUTH_URL)["paths"]["/connect/token"]["post"]["responses"]
    reasons = {
        (reason, int(status), json.dumps(example["value"]))
        for status, response in described.items()
        for reason, example in response.get("content", {})
        .get("application/json", {})
        .get("examples", {})
        .items()
    }
    assert len(reasons) > 30
    shown = {(e["name"], e["code"], json.dumps(json.loads(e["body"]))) for e in examples}
    assert reasons < shown


def test_it_holds_no_secret_but_the_public_ones_of_the_sandbox(postman: dict[str, Any]) -> None:
    values = {variable["key"]: variable["value"] for variable in postman["variable"]}
    assert set(values) == VARIABLES
    assert values["base_url"] == settings.AUTH_URL
    assert {values[name] for name in (*SECRETS, "client_id", "access_token")} == {""}
    public = {client.credentials.client_secret for client in CLIENTS}
    assert set(re.findall(r"cs_test_\w+", json.dumps(postman))) == public


def test_a_run_of_all_requests_ends_no_token_and_no_secret(postman: dict[str, Any]) -> None:
    revocation, deletion = (named(postman, name)["request"] for name in sorted(NOT_SENT_BY_ITSELF))
    assert sent(revocation["body"]["urlencoded"])["token"] == "{{token_to_end}}"
    assert deletion["auth"]["bearer"][0]["value"] == "{{token_to_end}}"
    values = {variable["key"]: variable["value"] for variable in postman["variable"]}
    assert values["token_to_end"] == ""
    scripts = [event["script"] for _, item in items(postman) for event in item.get("event", ())]
    assert "access_token" in json.dumps(scripts)
    assert "token_to_end" not in json.dumps(scripts)


def test_each_client_of_the_sandbox_is_a_request_of_its_own(postman: dict[str, Any]) -> None:
    for client in CLIENTS:
        item = named(postman, client.name)
        form = sent(item["request"]["body"]["urlencoded"])
        credentials = client.credentials
        assert form == {
            "grant_type": "client_credentials",
            "client_id": credentials.client_id,
            "client_secret": credentials.client_secret,
        }
        header = {"onbehalfof": client.on_behalf_of} if client.on_behalf_of else {}
        assert sent(item["request"]["header"]) == header


@pytest.mark.parametrize("path", ["/postman.json", "/bruno.zip"])
def test_it_is_a_file_that_caches_may_store_and_one_click_from_the_first_page(path: str) -> None:
    answer = Client().get(path)
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{FOLDER}.')
    assert answer["Cache-Control"] == "public, max-age=3600"
    assert Client().get(path, headers={"If-None-Match": answer["ETag"]}).status_code == 304
    assert f'href="{path}"' in page_of("/")


def test_the_zip_has_the_files_and_everybody_may_read_them() -> None:
    packed = zipfile.ZipFile(io.BytesIO(Client().get("/bruno.zip").content))
    unpacked = {info.filename: packed.read(info).decode() for info in packed.infolist()}
    files = bruno_files(settings.AUTH_URL)
    assert unpacked == {f"{FOLDER}/{path}": text for path, text in files.items()}
    assert {info.external_attr >> 16 for info in packed.infolist()} == {0o644}


# --- As the programs read them --------------------------------------------------------------------


@pytest.mark.processes
def test_postmans_schema_finds_no_fault(readers: Path, postman: dict[str, Any]) -> None:
    assert run(readers, "faults_of_postman.js", postman) == []
    wrong = {"variable": [{"key": "client_secret", "type": "secret"}]}
    (fault,) = run(readers, "faults_of_postman.js", postman | wrong)
    assert fault["instancePath"] == "/variable/0/type"


@pytest.mark.processes
def test_bruno_reads_the_same_requests(readers: Path, postman: dict[str, Any]) -> None:
    files = bruno_files(settings.AUTH_URL)
    parsed = run(
        readers, "parse_bruno.js", {p: text for p, text in files.items() if p.endswith(".bru")}
    )
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


@pytest.mark.processes
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
