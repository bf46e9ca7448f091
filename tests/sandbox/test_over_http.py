"""The sandbox as an ERP system sees it: over HTTP, on several processes that remember clients."""

from typing import Any

import httpx
import pytest

from identity.sandbox.catalogue import CLIENTS, TOKEN
from tests.conftest import StartService
from tests.servers.service import Service
from tokens.refusals.table import REFUSALS

pytestmark = [pytest.mark.processes, pytest.mark.django_db]


def log_in(url: str, client: dict[str, Any]) -> httpx.Response:
    form = {name: client[name] for name in ("client_id", "client_secret")}
    headers = {"onbehalfof": client["onbehalfof"]} if client["onbehalfof"] else {}
    form |= {"grant_type": "client_credentials"}
    return httpx.post(f"{url}/connect/token", data=form, headers=headers, timeout=30)


@pytest.fixture
def nodes(service: StartService, postgres_url: str) -> list[Service]:
    return [service(postgres_url, WEB_PROCESSES="1"), service(postgres_url, WEB_PROCESSES="1")]


def test_every_client_of_the_list_behaves_on_every_node_as_it_says(nodes: list[Service]) -> None:
    made = nodes[0].manage("sandbox")
    assert len(made["created"]) == len(CLIENTS)
    listed = httpx.get(f"{nodes[1].url}/sandbox.json").json()["clients"]
    for client in listed:
        for node in (*nodes, nodes[0]):  # the second time from what the node remembers
            if client["name"] == "one_login_a_minute":
                continue
            answer = log_in(node.url, client)
            expected = 200 if client["gets"] == TOKEN else REFUSALS[client["gets"]].status
            assert answer.status_code == expected, (client["name"], answer.text)
            if client["gets"] != TOKEN:
                assert f"/errors/{client['gets']}>" in answer.headers["Link"]
    by_name = {client["name"]: client for client in listed}
    assert log_in(nodes[0].url, by_name["token_for_a_minute"]).json()["expires_in"] == 60
    _meet_and_reset(nodes, by_name["one_login_a_minute"])


def _meet_and_reset(nodes: list[Service], client: dict[str, Any]) -> None:
    form = {name: client[name] for name in ("client_id", "client_secret")}
    for _ in range(3):
        assert log_in(nodes[0].url, client).status_code == 200
        assert [log_in(node.url, client).status_code for node in nodes] == [429, 429]
        done = httpx.post(f"{nodes[1].url}/sandbox/reset", data=form)
        assert done.status_code == 200, done.text
