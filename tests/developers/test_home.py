"""`GET /`: what an ERP developer reads who has nothing but the address of the service."""

import json
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.test import Client

from tests.conftest import StartService
from tests.developers.pages import page_of, text_of
from tokens.lifetime import TOKEN_LIFETIME

OPTIONAL = ("/sandbox", "/clientcheck.py", "/api/v1/management/openapi.json")


def test_it_names_the_service_and_its_figures_are_those_of_the_service(
    settings: Any, erp: Any
) -> None:
    answer = erp.login()
    minutes = json.loads(answer.content)["expires_in"] // 60
    assert timedelta(minutes=minutes) == TOKEN_LIFETIME
    text = text_of(page_of("/"))
    for shown in (
        f"POST {settings.AUTH_URL}/connect/token",
        *("This is the test environment", "ci_test_", f"Version {settings.VERSION}"),
        *(f"valid for {minutes} minutes", f"use it for {minutes - 5} minutes"),
        f"{answer['X-Rate-Limit-Limit']} logins a minute",
        f"A secret is valid for {settings.SECRET_LIFETIME.days} days",
    ):
        assert shown in text


@pytest.mark.django_db
def test_every_link_leads_somewhere() -> None:
    links = set(re.findall(r'<a [^>]*href="(/[^"]*)"', page_of("/")))
    assert {"/guide", "/errors/", "/openapi.json", "/health", *OPTIONAL} <= links
    for link in links - {"/admin/"}:
        assert Client().get(link).status_code == 200, link


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
    assert httpx.get(f"{node.url}/health").json()["environment"] == "live"
    described = httpx.get(f"{node.url}/openapi.json").json()
    assert described["servers"] == [{"url": node.url}]
    assert "/clientcheck.py" in described["paths"]
    assert "andbox" not in json.dumps(described)
    nothing = httpx.get(f"{node.url}/Sandbox").json()["error_description"]
    assert nothing == "There is nothing at this path."
    hint = httpx.post(f"{node.url}/connect/token/").json()["error_description"]
    assert f"POST to {node.url}/connect/token" in hint


def test_a_node_of_the_staff_alone_has_none(service: StartService) -> None:
    node = service(SERVE="staff")
    assert httpx.get(f"{node.url}/").headers["Location"] == "/admin/"
    for path in ("/errors/", "/guide", "/openapi.json", "/en/"):
        assert httpx.get(f"{node.url}{path}").status_code == 404, path
