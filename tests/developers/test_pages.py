"""The pages for developers: whole, safe to show, cached, in two languages, without dead links."""

import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.test import Client
from pytest_django import Settings

from identity.developers import packages
from identity.developers.guide import as_html
from identity.developers.openapi.document import document
from tests.conftest import StartService
from tests.developers.pages import page_of
from tests.servers.processes import CHECKOUT, completed

OPTIONAL = ("/sandbox", "/clientcheck.py", "/api/v1/management/openapi.json")


@pytest.mark.django_db
def test_every_link_leads_somewhere() -> None:
    links = set(re.findall(r'<a [^>]*href="(/[^"]*)"', page_of("/")))
    assert {"/guide", "/errors/", "/openapi.json", "/health", *OPTIONAL} <= links
    for link in links - {"/admin/"}:
        assert Client().get(link).status_code == 200, link


def test_a_login_node_has_it_without_what_is_served_elsewhere(service: StartService) -> None:
    node = service(SERVE="login", ENVIRONMENT="live")
    page = httpx.get(f"{node.url}/").text
    assert "This is the <strong>live</strong> environment" in page
    assert "No credentials yet?" not in page
    for link in ("/sandbox", "/api/v1/management/openapi.json", "/admin/"):
        assert f'href="{link}"' not in page, link
    assert 'href="/clientcheck.py"' in page
    assert httpx.get(f"{node.url}/ms/").headers["Content-Language"] == "ms"
    assert httpx.get(f"{node.url}/health").json()["environment"] == "live"
    described = httpx.get(f"{node.url}/openapi.json").json()
    assert described["servers"] == [{"url": node.url}]
    assert "/clientcheck.py" in described["paths"]
    assert "andbox" not in json.dumps(described)
    nothing = httpx.get(f"{node.url}/Sandbox").json()["error_description"]
    assert nothing == "There is nothing at this path."
    hint = httpx.post(f"{node.url}/connect/token/").json()["error_description"]
    assert f"POST to {node.url}/connect/token" in hint


# --- The guides, and `/packages/`, what they name -------------------------------------------------


GUIDES = ("/guide", "/api-teams", "/management-api", "/webhooks", "/permission-requests")


@pytest.mark.parametrize("address", GUIDES)
def test_each_link_within_it_leads_to_a_heading(address: str) -> None:
    page = page_of(address)
    ids = re.findall(r'<h[1-6] id="([\w-]+)"', page)
    assert len(ids) == len(set(ids)) > 3
    guide = page.partition('class="guide"')[2]
    assert set(re.findall(r'href="#([\w-]+)"', guide)) <= set(ids)
    for other, heading in re.findall(r'href="(/[\w-]+)(?:#([\w-]+))?"', guide):
        assert other in GUIDES
        assert not heading or f'id="{heading}"' in page_of(other)
    assert not re.findall(r'href="[^"#h/]', page)  # to a file of the source code


@pytest.mark.parametrize("address", ["/", *GUIDES])
def test_a_page_names_the_address_that_it_is_served_from(address: str, settings: Settings) -> None:
    settings.AUTH_URL = "https://id.country.test/einvoicing"
    page = page_of(address)
    assert "https://id.country.test/einvoicing" in page
    assert "127.0.0.1:8000" not in page
    assert not re.search(r"//(?:staff\.)?id\.example\.org", page)


def test_each_file_that_the_guide_for_api_teams_names_is_there() -> None:
    files = set(re.findall(r'href="(/packages/[^"]+)"', page_of("/api-teams")))
    files |= set(re.findall(r'href="(/packages/[^"#]+)"', page_of("/packages/")))
    assert {"/packages/examples/flask_api.py", "/packages/CHANGELOG.md"} <= files
    for file in files:
        answer = Client().get(file)
        assert answer.status_code == 200
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert b"./packages/" not in answer.content, "it must work without the repository"
    for outside in ("../pyproject.toml", "examples/../README.md", "examples/", "x"):
        assert Client().get(f"/packages/{outside}").status_code == 404


def test_pip_installs_what_is_offered_and_refuses_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """As a release builds it; what pip reads is the page."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT / "packages" / "einvoicing_tokens", check=True)
    monkeypatch.setattr(packages, "_BUILT", tmp_path)
    settings.AUTH_URL = "https://packages.test"  # no page of another test
    page = page_of("/ms/packages/")
    links = re.findall(r'href="/packages/(\S+)#sha256=(\w+)"', page)
    assert [name.rpartition("-")[2] for name, _digest in links] == ["any.whl", "0.1.0.tar.gz"]
    for name, digest in links:
        content = Client().get(f"/packages/{name}").content
        assert hashlib.sha256(content).hexdigest() == digest
        (tmp_path / "offered" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "offered" / name).write_bytes(content)
    listed = tmp_path / "list.html"
    listed.write_text(page.replace("/packages/", f"file://{tmp_path}/offered/"))
    download = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index", "--find-links"]
    command = [*download, str(listed), "einvoicing-tokens", "--no-cache-dir", "--dest"]
    assert completed([*command, str(tmp_path / "got")]).returncode == 0
    (tmp_path / "offered" / links[0][0]).write_bytes(b"another")
    refused = completed([*command, str(tmp_path / "not got")])
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_nothing_in_a_document_becomes_a_script(text: str) -> None:
    html = as_html(text)
    assert "<script" not in html
    assert 'href="javascript' not in html


# --- `/reference` ---------------------------------------------------------------------------------


def test_it_has_every_address_parameter_and_status_of_the_description() -> None:
    page = unescape(page_of("/reference"))
    assert "<script" not in page
    for path, methods in document(settings.AUTH_URL)["paths"].items():
        for method in set(methods) & {"get", "post", "delete"}:
            _before, found, rest = page.partition(f">{method.upper()} {path}</h2>")
            assert found, path
            section = rest.partition("<h2")[0]
            for status in methods[method]["responses"]:
                assert f"<td><code>{status}</code></td>" in section, (path, status)
    login = page.partition(">POST /connect/token</h2>")[2].partition("<h2")[0]
    for name in ("grant_type", "client_id", "client_secret", "client_assertion", "scope"):
        assert f"<td><code>{name}</code></td>" in login
    assert "onbehalfof" in login


# --- One page in two languages --------------------------------------------------------------------


ADDRESSES = ["", "management-api", "packages/", "reference", "errors/", "errors/no_permission"]
every_address = pytest.mark.parametrize("address", ADDRESSES)


@every_address
@pytest.mark.parametrize(
    ("prefix", "accepted", "language"),
    [("", "en", "en"), ("", "ms", "ms"), ("en/", "ms", "en"), ("ms/", "en", "ms")],
)
def test_a_plain_address_is_in_the_language_of_the_browser_and_any_other_in_its_own(
    address: str, prefix: str, accepted: str, language: str
) -> None:
    answer = Client().get(f"/{prefix}{address}", headers={"Accept-Language": accepted})
    assert answer["Content-Language"] == language
    assert answer.get("Vary") == (None if prefix else "Accept-Language")
    assert f'<html lang="{language}">' in answer.content.decode()


@every_address
def test_a_page_may_be_cached_and_is_asked_for_again_by_its_etag(address: str) -> None:
    first = Client().get(f"/{address}")
    assert first["Cache-Control"] == "public, max-age=3600"
    assert not {"Set-Cookie", "Location"} & set(first.headers)
    again = Client().get(f"/{address}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (again["ETag"], again["Vary"]) == (first["ETag"], "Accept-Language")
    malay = Client().get(f"/{address}", headers={"Accept-Language": "ms"})
    assert malay["ETag"] != first["ETag"]


@every_address
def test_a_page_runs_no_script_and_loads_nothing_from_elsewhere(address: str) -> None:
    answer = Client().get(f"/{address}")
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    page = answer.content.decode()
    assert re.findall(r"<script|<style|<img|<[^>]+ (?:style|on\w+)=|javascript:", page) == []
