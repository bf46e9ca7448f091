"""`GET /`: what an ERP developer reads who has nothing but the address of the service."""

import json
import re

import httpx
import pytest
from django.test import Client

from tests.conftest import StartService
from tests.developers.pages import page_of

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
