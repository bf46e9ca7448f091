"""`GET /`: what an ERP developer reads who has nothing but the address of the service."""

import json
import re
import subprocess
from datetime import timedelta
from html import unescape
from typing import Any

import httpx
import pytest
from django.test import Client

from tests.conftest import StartService
from tests.developers.pages import page_of, text_of
from tests.servers.service import Service
from tokens.lifetime import TOKEN_LIFETIME

OPTIONAL = ("/sandbox", "/clientcheck.py", "/api/v1/management/openapi.json")


def test_it_names_the_address_the_environment_and_the_version(settings: Any) -> None:
    text = text_of(page_of("/"))
    assert f"POST {settings.AUTH_URL}/connect/token" in text
    assert "This is the test environment" in text
    assert "ci_test_" in text
    assert f"Version {settings.VERSION}" in text


def test_its_figures_are_those_of_the_service(settings: Any, erp: Any) -> None:
    text = text_of(page_of("/"))
    answer = erp.login()
    minutes = json.loads(answer.content)["expires_in"] // 60
    assert timedelta(minutes=minutes) == TOKEN_LIFETIME
    assert f"valid for {minutes} minutes" in text
    assert f"use it for {minutes - 5} minutes" in text
    assert f"{answer['X-Rate-Limit-Limit']} logins a minute" in text
    assert f"A secret is valid for {settings.SECRET_LIFETIME.days} days" in text


@pytest.mark.django_db
def test_every_link_leads_somewhere() -> None:
    links = set(re.findall(r'<a [^>]*href="(/[^"]*)"', page_of("/")))
    assert {"/guide", "/errors/", "/openapi.json", "/health", *OPTIONAL} <= links
    for link in links - {"/admin/"}:
        assert Client().get(link).status_code == 200, link


@pytest.mark.django_db
def test_the_credentials_that_it_leads_to_log_in(node: Service) -> None:
    page = httpx.get(f"{node.url}/").text
    assert "No credentials yet? Those of the client <code>works</code>" in page
    node.manage("sandbox")
    shown = httpx.get(f"{node.url}/sandbox").text
    (line,) = re.findall(r"<code>(curl .*?)</code>", shown, re.DOTALL)
    done = subprocess.run(["sh", "-c", unescape(line)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["expires_in"] == 3600


def test_every_section_is_in_the_list_of_contents() -> None:
    page = page_of("/")
    headings = re.findall(r'<h2 id="([\w-]+)"', page)
    contents = page.partition('<nav class="contents"')[2].partition("</nav>")[0]
    assert re.findall(r'href="#([\w-]+)"', contents) == headings
    assert len(headings) == 7


def test_a_login_node_has_it_without_what_is_served_elsewhere(service: StartService) -> None:
    node = service(SERVE="login", ENVIRONMENT="live")
    page = httpx.get(f"{node.url}/").text
    assert "This is the <strong>live</strong> environment" in page
    assert "No credentials yet?" not in page
    for link in ("/sandbox", "/api/v1/management/openapi.json", "/admin/"):
        assert f'href="{link}"' not in page, link
    assert 'href="/clientcheck.py"' in page
    assert httpx.get(f"{node.url}/ms/").headers["Content-Language"] == "ms"
    assert httpx.get(f"{node.url}/openapi.json").json()["servers"] == [{"url": node.url}]
    assert httpx.get(f"{node.url}/health").json()["environment"] == "live"
    described = httpx.get(f"{node.url}/openapi.json").json()
    assert "/clientcheck.py" in described["paths"]
    assert "andbox" not in json.dumps(described)
    collection = httpx.get(f"{node.url}/postman.json").json()
    assert [folder["name"] for folder in collection["item"]] == [
        *("Clients", "Protected APIs", "Public")
    ]
    assert "andbox" not in json.dumps(collection)
    nothing = httpx.get(f"{node.url}/Sandbox").json()["error_description"]
    assert nothing == "There is nothing at this path."
    hint = httpx.post(f"{node.url}/connect/token/").json()["error_description"]
    assert f"POST to {node.url}/connect/token" in hint


def test_a_node_of_the_staff_alone_has_none(service: StartService) -> None:
    node = service(SERVE="staff")
    assert httpx.get(f"{node.url}/").headers["Location"] == "/admin/"
    for path in ("/errors/", "/guide", "/openapi.json", "/en/"):
        assert httpx.get(f"{node.url}{path}").status_code == 404, path
