"""The service as it runs in production: several processes and nodes, and bytes on the wire."""

import http.client
import json
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlencode, urlsplit

import httpx
import jwt
import pytest

from tests.conftest import StartService
from tests.introspection.api import INACTIVE
from tests.introspection.api import claims_of as claims_in
from tests.introspection.party import Party
from tests.servers.service import Service
from tests.status_lists.reader import bits_of
from tests.support.erp import PATH, Erp
from tokens.models import LoginEvent

TIN = "C1000000001"


def new_client(node: Service, *options: str) -> Erp:
    node.manage("register_taxpayer", TIN, "--name", "Sample")
    issued = node.manage("issue_credentials", TIN, "--name", "ERP", *options)
    return Erp(issued["client_id"], issued["client_secret"])


def on_the_wire(node: Service, request: bytes) -> bytes:
    """Everything that comes back for these bytes until the service closes or falls silent."""
    host, port = urlsplit(node.url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(request)
        connection.settimeout(1.5)
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except TimeoutError:
            pass
        return answer


def post_bytes(body: bytes, *headers: str) -> bytes:
    lines = [
        f"POST {PATH} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/x-www-form-urlencoded",
        *headers,
    ]
    if not any(h.lower().startswith(("content-length", "transfer-encoding")) for h in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture(scope="module")
def erp_of_node(node: Service) -> Erp:
    return new_client(node)


def test_the_reason_phrase_of_a_refusal_is_the_error_code(node: Service) -> None:
    with closing(http.client.HTTPConnection(urlsplit(node.url).netloc)) as connection:
        connection.request("POST", PATH, "grant_type=x", {"Content-Type": "text/plain"})
        answer = connection.getresponse()
        body = answer.read()
    assert (answer.status, answer.reason) == (400, "invalid_request")
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(body)["error"] == "invalid_request"


def test_a_doubled_on_behalf_of_is_refused(node: Service, erp_of_node: Erp) -> None:
    body = urlencode(erp_of_node.form).encode()
    answer = on_the_wire(
        node,
        post_bytes(body, "onbehalfof: C1000000001", "onbehalfof: C2000000002", "Connection: close"),
    )
    assert answer.startswith(b"HTTP/1.1 400 invalid_request\r\n")
    assert b"onbehalfof is wrong" in answer


def test_a_chunked_body_is_a_login_or_a_clear_refusal_and_never_a_second_request(
    node: Service, erp_of_node: Erp
) -> None:
    body = urlencode(erp_of_node.form).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = on_the_wire(
        node, post_bytes(chunked, "Transfer-Encoding: chunked", "Connection: close")
    )
    assert answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 invalid_request"))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_oversized_body_is_refused_with_json(node: Service) -> None:
    answer = httpx.post(
        f"{node.url}{PATH}",
        content=b"a" * 20_000,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 400
    assert "16384" in answer.json()["error_description"]


def logins(nodes: list[Service], erp: Erp, count: int) -> Counter[int]:
    def log_in(n: int) -> int:
        node = nodes[n % len(nodes)]
        return httpx.post(f"{node.url}{PATH}", data=erp.form, timeout=30).status_code

    with ThreadPoolExecutor(8) as threads:
        return Counter(threads.map(log_in, range(count)))


def recorded(node: Service, erp: Erp) -> int:
    return node.run(LoginEvent.objects.filter(client_id=erp.client_id).count)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Empty: SQLite."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_the_limit_and_the_record_are_exact_over_processes_and_nodes(
    database_url: str, service: StartService
) -> None:
    nodes = [service(database_url), service(database_url)]
    erp = new_client(nodes[0], "--logins-per-minute", "20")
    assert logins(nodes, erp, 60) == {200: 20, 429: 40}
    assert recorded(nodes[0], erp) == 20


def test_a_block_takes_effect_at_once_on_every_node(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url), service(postgres_url)]
    erp = new_client(nodes[0])
    assert logins(nodes, erp, 2) == {200: 2}
    nodes[0].manage("block_system_user", erp.client_id, "--reason", "test")
    assert logins(nodes, erp, 4) == {400: 4}


def test_a_rotated_key_is_picked_up_by_running_workers(
    service: StartService, postgres_url: str
) -> None:
    node = service(postgres_url)
    erp = new_client(node)
    assert logins([node], erp, 1) == {200: 1}
    node.manage("rotate_signing_key")
    deadline, keys = time.monotonic() + 60, []
    while time.monotonic() < deadline:
        keys = httpx.get(f"{node.url}/.well-known/jwks.json").json()["keys"]
        if len(keys) == 2:
            break
        time.sleep(2)
    assert len(keys) == 2


def test_a_compromised_key_is_stopped_on_every_running_node_within_seconds(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url, AUTH_URL="http://id.example.org") for _ in range(2)]
    erp = new_client(nodes[0], "--logins-per-minute", "0")
    old = token_of(nodes[1], erp)
    kid = jwt.get_unverified_header(old)["kid"]
    assert [accepts(node, old) for node in nodes] == [True, True]
    new = nodes[0].manage("rotate_signing_key", f"--compromised={kid}")["kid"]
    deadline = time.monotonic() + 10  # as promised; READ_EVERY is one second
    for node in nodes:
        while accepts(node, old) or published_by(node) != {new}:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        token = token_of(node, erp)
        assert jwt.get_unverified_header(token)["kid"] == new
        assert [accepts(each, token) for each in nodes] == [True, True]


def token_of(node: Service, erp: Erp) -> str:
    token: str = httpx.post(f"{node.url}{PATH}", data=erp.form).json()["access_token"]
    return token


def accepts(node: Service, token: str) -> bool:
    """Whether each of its processes does: a new connection may reach any of them."""
    headers = {"Authorization": f"Bearer {token}"}
    statuses = {httpx.get(f"{node.url}/api/v1/me", headers=headers).status_code for _ in range(6)}
    assert statuses <= {200, 401}
    return 200 in statuses


def published_by(node: Service) -> set[str]:
    answers = [httpx.get(f"{node.url}/.well-known/jwks.json").json() for _ in range(6)]
    return {key["kid"] for answer in answers for key in answer["keys"]}


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
    service: StartService, serve: str, answered: dict[str, int]
) -> None:
    url = service(SERVE=serve).url
    answers = {
        "login": httpx.post(f"{url}/connect/token", data={"grant_type": "client_credentials"}),
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
        page = f"{url}/errors/missing_parameter"
        assert answers["login"].headers["Link"] == f'<{page}>; rel="help"'
        assert "<h1>Parameter missing</h1>" in answers["help"].text


def test_a_revocation_is_seen_by_every_node_and_after_a_restart(
    service: StartService, postgres_url: str
) -> None:
    public = {"AUTH_URL": "http://id.example.org"}  # the issuer is the same for all nodes
    first, second = service(postgres_url, **public), service(postgres_url, SERVE="login", **public)
    party = Party(first)
    token = party.token()
    assert party.introspect(token, second)["active"] is True
    party.revoke(token)
    assert {str(party.introspect(token, node)) for node in (first, second)} == {str(INACTIVE)}
    first.stop()
    third = service(postgres_url, **public)
    assert party.introspect(token, third) == INACTIVE
    first.manage("block_system_user", party.erp["client_id"], "--reason", "abuse")
    metrics = httpx.get(f"{second.url}/metrics").text
    assert 'introspections_total{outcome="active"} 1.0' in metrics
    assert 'introspections_total{outcome="inactive"} 1.0' in metrics


def is_ended_in_the_list(node: Service, token: str) -> bool:
    """By the list as this node publishes it; its signature is the matter of other tests."""
    reference = claims_in(token)["status"]["status_list"]
    answer = httpx.get(f"{node.url}/status/{reference['uri'].rpartition('/')[2]}")
    claims = claims_in(answer.raise_for_status().text)
    return bool(bits_of(claims)[reference["idx"] // 8] >> reference["idx"] % 8 & 1)


def test_a_block_is_published_by_every_node_in_the_time_of_the_contract(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url, SERVE="login", WEB_PROCESSES="2") for _ in range(2)]
    party = Party(nodes[0])
    tokens = [party.token() for _ in range(2)]
    assert [is_ended_in_the_list(node, tokens[0]) for node in nodes] == [False, False]
    blocked = time.monotonic()
    nodes[0].manage("block_system_user", party.erp["client_id"], "--reason", "abuse")
    nodes[0].manage("unblock_system_user", party.erp["client_id"], "--reason", "sorry")
    new = party.token()
    while not all(is_ended_in_the_list(node, token) for node in nodes for token in tokens):
        assert time.monotonic() - blocked < 10
        time.sleep(0.05)
    # Also in the processes that were not asked just now, and after a restart.
    nodes.append(service(postgres_url, SERVE="login"))
    assert [is_ended_in_the_list(node, tokens[0]) for node in nodes for _ in range(4)] == [
        True
    ] * 12
    assert not any(is_ended_in_the_list(node, new) for node in nodes)
