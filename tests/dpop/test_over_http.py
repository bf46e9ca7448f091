"""DPoP over HTTP at two running nodes (RFC 9449); real clients are in tests/real_clients/."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from pytest_django import DjangoDbBlocker

from tests.client_auth.key_erp import new_pair
from tests.conftest import StartService
from tests.dpop.dpop_erp import NONCE, DpopErp
from tests.introspection.party import Party, credentials
from tests.servers.service import Service
from tests.support.erp import Erp

ISSUER = "http://id.example.org"  # not the address of a node, as behind a proxy


@pytest.fixture(autouse=True)
def database_of_the_service(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """This process may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def nodes(service: StartService, postgres_url: str) -> list[Service]:
    return [service(postgres_url, SERVE="login", AUTH_URL=ISSUER) for _ in "ab"]


def bound(node: Service) -> Party:
    party = Party(node)
    binding = ("--token-binding", "dpop", "--reason", "asked by letter")
    node.manage("change_system_user", party.erp["client_id"], *binding)
    return party


def test_one_proof_sent_to_two_nodes_at_once_gets_one_token(nodes: list[Service]) -> None:
    party = bound(nodes[0])
    erp = DpopErp(Erp(party.erp["client_id"], party.erp["client_secret"]), new_pair())
    htu = f"{ISSUER}/connect/token"

    def post(node: Service, *proofs: str) -> httpx.Response:
        headers = [("DPoP", proof) for proof in proofs]
        form = {"grant_type": "client_credentials", **credentials(party.erp)}
        return httpx.post(f"{node.url}/connect/token", data=form, headers=headers, timeout=10)

    first = post(nodes[0], erp.proof(htu=htu))
    assert first.json()["error"] == "use_dpop_nonce"
    erp.nonce = first.headers[NONCE]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            proof = erp.proof(htu=htu)
            answers = list(threads.map(lambda node, p=proof: post(node, p), nodes * 2))
            errors = [answer.json().get("error", "") for answer in answers]
            assert sorted(errors) == ["", *["invalid_dpop_proof"] * 3]
    two = post(nodes[1], erp.proof(htu=htu), erp.proof(htu=htu))
    assert two.json()["error"] == "invalid_dpop_proof"
    assert "more than once" in two.json()["error_description"]
    other_address = post(nodes[1], erp.proof(htu=f"{nodes[1].url}/connect/token"))
    assert "not the address" in other_address.json()["error_description"]
