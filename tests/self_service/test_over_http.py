"""The same over HTTP, at a node that serves logins only, and behind the real proxy."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pytest_django import DjangoDbBlocker

from tests.conftest import StartService
from tests.introspection.party import Party, credentials
from tests.self_service.calls import CREDENTIALS, PERMISSIONS, REVOKE_LAST, explanation_path
from tests.servers.service import Service


@pytest.fixture(autouse=True)
def database_of_the_service(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """This process may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield


def ask(node: Service, method: str, path: str, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.request(method, f"{node.url}{path}", headers=headers, timeout=10)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert len(answer.headers.get_list("correlationId")) == 1
    return answer


def test_a_client_sees_itself_rotates_its_secret_and_ends_the_old_one(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url, SERVE="login", AUTH_URL="http://id.example.org") for _ in "ab"]
    party = Party(nodes[0])
    old = party.token()
    seen: dict[str, Any] = ask(nodes[1], "GET", CREDENTIALS, old).json()
    assert seen["client_id"] == party.erp["client_id"]
    assert [secret["state"] for secret in seen["secrets"]] == ["live"]
    assert ask(nodes[1], "GET", PERMISSIONS, old).json()["intermediary"] is None
    assert ask(nodes[0], "DELETE", CREDENTIALS, old).status_code == 409
    party.erp |= nodes[0].manage("rotate_secret", party.erp["client_id"])
    new = party.token()
    assert ask(nodes[0], "DELETE", CREDENTIALS, old).status_code == 200
    for node in nodes:
        assert ask(node, "DELETE", CREDENTIALS, old).status_code == 401
        assert party.introspect(old, node) == {"active": False}
        assert party.introspect(new, node)["active"] is True
        assert ask(node, "GET", CREDENTIALS, new).json()["secrets"][1]["state"] == "revoked"
    form = {"grant_type": "client_credentials", **credentials(party.erp)}
    refused = httpx.post(
        f"{nodes[0].url}/connect/token", data=form, headers={"onbehalfof": "C9999999999"}
    )
    reference = refused.headers["correlationId"]
    explained = ask(nodes[1], "POST", explanation_path(reference), new).json()
    assert explained["outcome"] == "not_an_intermediary"
    assert ask(nodes[1], "DELETE", REVOKE_LAST, new).json()["live_secrets"] == []
    ended = httpx.post(f"{nodes[0].url}/connect/token", data=form)
    assert (ended.status_code, ended.json()["error"]) == (400, "invalid_client")


@pytest.mark.parametrize("reference", ["x", "%00", "%2e%2e", "%ff%fe", "a" * 6_000, "%"])
def test_a_bad_reference_is_a_404_or_a_400_in_json(node: Service, reference: str) -> None:
    answer = httpx.post(f"{node.url}/api/v1/logins/{reference}/explanation")
    assert answer.status_code in (400, 401, 404)
    assert set(answer.json()) == {"error", "error_description"}
