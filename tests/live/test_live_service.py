"""Two nodes of two processes and one database: what is exact, and what spreads (contract 1)."""

import itertools
import time
from collections.abc import Callable

import httpx
import jwt
import pytest

from tests.conftest import StartService
from tests.introspection.api import INACTIVE, claims_of as claims_in
from tests.introspection.party import Party
from tests.live.cluster import is_valid, login_at, logins, new_client, recorded
from tests.servers.processes import slowness, until
from tests.servers.service import Service
from tests.status_lists.reader import bits_of
from tests.support.over_http import SIGN_IN, new_boss, send_form, sign_in

pytestmark = pytest.mark.processes

PROXY, DIRECT = "127.0.0.2", "127.0.0.1"
OFFICE, ELSEWHERE = "198.51.100.7", "203.0.113.9"
# The issuer is the same for all nodes.
SETTINGS = {"AUTH_URL": "http://id.example.org", "TRUSTED_PROXIES": PROXY, "WEB_PROCESSES": "2"}


@pytest.fixture(scope="module")
def start_node(services: StartService, module_database: str) -> Callable[..., Service]:
    return lambda **settings: services(module_database, **SETTINGS | settings)


@pytest.fixture(scope="module")
def nodes(start_node: Callable[..., Service]) -> list[Service]:
    return [start_node(), start_node(SERVE="login")]


def test_the_limit_and_the_record_are_exact_over_processes(node: Service) -> None:
    """On SQLite; on PostgreSQL, over two nodes: tests/live/test_load_balancer.py."""
    erp = new_client(node, "--logins-per-minute", "20")
    assert logins([node], erp, 60) == {200: 20, 429: 40}
    assert recorded(node, erp) == 20


@pytest.mark.gate
def test_a_block_takes_effect_at_once_on_every_node(nodes: list[Service]) -> None:
    erp = new_client(nodes[0])
    assert logins(nodes, erp, 2) == {200: 2}
    nodes[0].manage("block_system_user", erp.client_id, "--reason", "test")
    assert logins(nodes, erp, 4) == {400: 4}


def published_by(node: Service) -> set[str]:
    return {key["kid"] for key in httpx.get(f"{node.url}/.well-known/jwks.json").json()["keys"]}


@pytest.mark.gate
def test_a_compromised_key_is_stopped_on_every_running_node_within_seconds(
    start_node: Callable[..., Service],
) -> None:
    """Of one process each: any request to it finds what it knows, not what another process does."""
    nodes = [start_node(WEB_PROCESSES="1"), start_node(WEB_PROCESSES="1", SERVE="login")]
    erp = new_client(nodes[0], "--logins-per-minute", "0")
    old = login_at(nodes[1], erp).json()["access_token"]
    kid = jwt.get_unverified_header(old)["kid"]
    assert [is_valid(node, old) for node in nodes] == [True, True]
    new = nodes[0].manage("rotate_signing_key", f"--compromised={kid}")["kid"]
    for node in nodes:  # as promised; READ_EVERY is one second
        until(lambda at=node: published_by(at) & {kid, new} == {new}, 10)  # type: ignore[misc]
        assert not is_valid(node, old)
    for node in nodes:  # a token of one is accepted by each
        token = login_at(node, erp).json()["access_token"]
        assert jwt.get_unverified_header(token)["kid"] == new
        assert [is_valid(each, token) for each in nodes] == [True, True]


PROTOCOL = {"login": 400, "keys": 200, "help": 200, "no help": 404, "health": 200, "metrics": 200}


@pytest.mark.parametrize(
    ("serve", "answered"),
    [
        ("both", PROTOCOL | {"staff": 302}),
        ("login", PROTOCOL | {"staff": 404}),
        ("staff", PROTOCOL | {"login": 404, "keys": 404, "help": 404, "staff": 302}),
    ],
)
def test_a_process_answers_what_it_is_told_to_serve(
    nodes: list[Service], start_node: Callable[..., Service], serve: str, answered: dict[str, int]
) -> None:
    running = {"both": lambda: nodes[0], "login": lambda: nodes[1]}
    url = running.get(serve, lambda: start_node(SERVE=serve))().url
    # From an address at which no other test has failed.
    with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.9")) as fresh:
        login = fresh.post(f"{url}/connect/token", data={"grant_type": "client_credentials"})
    answers = {
        "login": login,
        "keys": httpx.get(f"{url}/.well-known/jwks.json"),
        "help": httpx.get(f"{url}/errors/missing_parameter"),
        "no help": httpx.get(f"{url}/errors/nonsense"),
        "health": httpx.get(f"{url}/health/ready"),
        "metrics": httpx.get(f"{url}/metrics"),
        "staff": httpx.get(f"{url}/admin/"),
    }
    assert {name: answer.status_code for name, answer in answers.items()} == answered
    assert answers["no help"].json()["error"] == "not_found"
    if answers["help"].status_code == 200:
        page = f"{SETTINGS['AUTH_URL']}/errors/missing_parameter"
        assert answers["login"].headers["Link"] == f'<{page}>; rel="help"'
        assert "<h1>Parameter missing</h1>" in answers["help"].text


def is_ended_in_the_list(node: Service, token: str) -> bool:
    """By the list as this node publishes it; its signature is the matter of other tests."""
    reference = claims_in(token)["status"]["status_list"]
    answer = httpx.get(f"{node.url}/status/{reference['uri'].rpartition('/')[2]}")
    claims = claims_in(answer.raise_for_status().text)
    return bool(bits_of(claims)[reference["idx"] // 8] >> reference["idx"] % 8 & 1)


@pytest.mark.gate
def test_an_end_is_seen_by_every_node_published_in_time_and_known_after_a_restart(
    nodes: list[Service], start_node: Callable[..., Service]
) -> None:
    party, by_index = Party(nodes[0]), [*nodes, *nodes]
    revoked, *blocked = (party.token() for _ in range(3))
    assert [party.introspect(revoked, node)["active"] for node in nodes] == [True, True]
    assert [is_ended_in_the_list(node, blocked[0]) for node in nodes] == [False, False]
    party.revoke(revoked)
    assert [party.introspect(revoked, node) for node in nodes] == [INACTIVE] * 2
    nodes[0].manage("block_system_user", party.erp["client_id"], "--reason", "abuse")
    nodes[0].manage("unblock_system_user", party.erp["client_id"], "--reason", "sorry")
    began = time.monotonic()
    new = party.token()
    assert [party.introspect(blocked[0], node) for node in nodes] == [INACTIVE] * 2
    until(lambda: all(is_ended_in_the_list(n, t) for n in by_index for t in (revoked, *blocked)))
    assert time.monotonic() - began < 10 * slowness()
    # Also in the processes that were not asked just now, and after a restart.
    third = start_node(SERVE="login")
    assert all(is_ended_in_the_list(node, blocked[0]) for node in (*by_index, third, third))
    assert party.introspect(revoked, third) == INACTIVE
    assert not any(is_ended_in_the_list(node, new) for node in (*nodes, third))
    metrics = httpx.get(f"{nodes[1].url}/metrics").text
    assert 'introspections_total{outcome="active"} 1.0' in metrics
    assert 'introspections_total{outcome="inactive"} 2.0' in metrics


def browser(node: Service, hop: str, forwarded_for: str) -> httpx.Client:
    """A new browser and a new connection, so that any process may answer."""
    return httpx.Client(
        base_url=node.url,
        transport=httpx.HTTPTransport(local_address=hop),
        headers={"X-Forwarded-For": forwarded_for},
        timeout=30,
    )


def test_who_guesses_a_password_is_stopped_by_every_process_and_stops_nobody_else(
    nodes: list[Service],
) -> None:
    node, boss = nodes[0], new_boss(nodes[0])

    def guess(hop: str, forwarded_for: str) -> bool:
        """Whether the password was checked, and not refused unseen."""
        with browser(node, hop, forwarded_for) as client:
            page = send_form(client, SIGN_IN, node.url, login="boss", password="wrong").text
        assert ("is wrong" in page) is not ("Too many failed attempts" in page), page
        return "is wrong" in page

    # Behind the proxy the address is the last one, whatever the client wrote before it.
    made_up = (f"192.0.2.{number}" for number in itertools.count())
    through = [guess(PROXY, f"{next(made_up)}, {ELSEWHERE}") for _ in range(7)]
    assert through == [True] * 5 + [False] * 2
    # Without a trusted proxy the header is not believed at all.
    assert [guess(DIRECT, next(made_up)) for _ in range(7)] == [True] * 5 + [False] * 2
    with browser(node, PROXY, OFFICE) as officer:
        assert sign_in(officer, node.url, boss).status_code == 302
        assert officer.get("/admin/").status_code == 200
