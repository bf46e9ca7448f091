"""The guides: documents, whole, and safe to show; `/packages/`, what they name."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from identity.developers import packages
from identity.developers.guide import as_html
from tests.developers.pages import page_of
from tests.servers.processes import CHECKOUT, completed

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
