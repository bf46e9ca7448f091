"""Status lists of running nodes: all of them publish a change, also those that did not make it."""

import time

import httpx

from tests.conftest import StartService
from tests.introspection.api import claims_of
from tests.introspection.party import Party
from tests.servers.service import Service
from tests.status_lists.reader import bits_of

CONTRACT_SECONDS = 10


def is_ended(node: Service, token: str) -> bool:
    """By the list as this node publishes it; its signature is the matter of other tests."""
    reference = claims_of(token)["status"]["status_list"]
    answer = httpx.get(f"{node.url}/status/{reference['uri'].rpartition('/')[2]}")
    claims = claims_of(answer.raise_for_status().text)
    return bool(bits_of(claims)[reference["idx"] // 8] >> reference["idx"] % 8 & 1)


def test_a_block_is_published_by_every_node_in_the_time_of_the_contract(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url, SERVE="login", WEB_PROCESSES="2") for _ in range(2)]
    party = Party(nodes[0])
    tokens = [party.token() for _ in range(2)]
    assert [is_ended(node, tokens[0]) for node in nodes] == [False, False]
    blocked = time.monotonic()
    nodes[0].manage("block_system_user", party.erp["client_id"], "--reason", "abuse")
    nodes[0].manage("unblock_system_user", party.erp["client_id"], "--reason", "sorry")
    new = party.token()
    while not all(is_ended(node, token) for node in nodes for token in tokens):
        assert time.monotonic() - blocked < CONTRACT_SECONDS
        time.sleep(0.05)
    # Also in the processes that were not asked just now, and after a restart.
    nodes.append(service(postgres_url, SERVE="login"))
    assert [is_ended(node, tokens[0]) for node in nodes for _ in range(4)] == [True] * 12
    assert not any(is_ended(node, new) for node in nodes)
