"""Two nodes on PostgreSQL, as in production: one for logins, one for staff and the portal."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pytest_django import DjangoDbBlocker

from tests.conftest import StartService
from tests.management_api.portal import BASE, PROBLEM, SCOPES
from tests.servers.service import Service


@pytest.fixture(autouse=True)
def database_of_the_service(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """This process may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield


def token_from(node: Service, credentials: dict[str, Any], scope: str) -> httpx.Response:
    form = {
        "grant_type": "client_credentials",
        "scope": scope,
        "client_id": credentials["client_id"],
        "client_secret": credentials["client_secret"],
    }
    return httpx.post(f"{node.url}/connect/token", data=form, timeout=20)


def test_a_block_by_the_portal_takes_effect_at_the_next_login(
    service: StartService, postgres_url: str
) -> None:
    settings = {"SCOPES": json.dumps(SCOPES), "AUTH_URL": "http://id.example.org"}
    login = service(postgres_url, SERVE="login", **settings)
    staff = service(postgres_url, SERVE="staff", STAFF_URL="http://staff.example.org", **settings)
    staff.manage("register_taxpayer", "C1000000001", "--name", "Authority")
    command = ("issue_credentials", "C1000000001", "--name")
    portal = staff.manage(*command, "Portal", "--scope", "RegistryAPI")
    erp = staff.manage(*command, "ERP")
    token = token_from(login, portal, "RegistryAPI").json()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "If-Match": "*"}
    path = f"{BASE}/system-users/{erp['client_id']}"
    assert token_from(login, erp, "InvoicingAPI").status_code == 200

    answer = httpx.post(f"{staff.url}{path}/block", json={"reason": "x"}, headers=headers)
    assert answer.json()["blocked"]["by"] == f"{portal['client_id']} (client)"
    assert len(answer.headers.get_list("correlationId")) == 1
    refused = token_from(login, erp, "InvoicingAPI")
    assert (refused.status_code, refused.json()["error"]) == (400, "unauthorised_client")

    elsewhere = httpx.get(f"{login.url}{path}", headers=headers)
    assert (elsewhere.status_code, elsewhere.json()["error"]) == (404, "not_found")
    assert httpx.post(f"{staff.url}/connect/token").status_code == 404
    large = httpx.post(
        f"{staff.url}{BASE}/taxpayers", content=b"[" * 1_000_000, headers=headers | JSON
    )
    assert (large.status_code, large.headers["Content-Type"]) == (413, PROBLEM)
    hostile = httpx.get(f"{staff.url}{BASE}/taxpayers/%00%ff?x=%zz", headers=headers)
    assert (hostile.status_code, hostile.headers["Content-Type"]) == (404, PROBLEM)


JSON = {"Content-Type": "application/json"}
