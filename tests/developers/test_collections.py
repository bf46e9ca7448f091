"""The collections for Postman and Bruno: what they contain."""

import io
import json
import re
import zipfile
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from identity.developers.collections.bruno import FOLDER, bruno_files
from identity.developers.openapi.document import document
from identity.sandbox.catalogue import CLIENTS
from tests.developers.collection import (
    NOT_SENT_BY_ITSELF,
    SECRETS,
    VARIABLES,
    collection,
    items,
    named,
    sent,
)
from tests.developers.pages import page_of


@pytest.fixture(scope="module")
def postman() -> dict[str, Any]:
    return collection()


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
