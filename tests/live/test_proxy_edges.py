"""What the proxy answers by itself, hides, and endures: `deploy/nginx.conf` under hostile clients.

It passes a body on as it arrives. What does not depend on that is also true of a proxy that waits
for the whole body, as nginx does unless told otherwise.
"""

import contextlib
import re
import resource
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest

from identity.staff.urls import urlpatterns as staff_paths
from identity.urls import urlpatterns as public_paths
from tests.conftest import StartService
from tests.live.cluster import STAFF_HOST, TIN, Cluster, assert_proxy_answer, behind
from tests.live.test_http_server import CLOSE, FORM_TYPE, NAME, START, with_trailer
from tests.servers.nginx import (
    CONFIGURATION,
    HOST,
    STAFF_ADDRESS,
    Ports,
    free_ports,
    start_balancer,
)
from tests.servers.processes import free_port, slowness, stopping
from tests.servers.wire import WireAnswer, answers_in
from tests.support.erp import PATH

pytestmark = pytest.mark.processes

BUFFERED = (r"proxy_request_buffering off;", "proxy_request_buffering on;")


@pytest.fixture(
    scope="module", params=["streaming", pytest.param("buffering", marks=pytest.mark.long)]
)
def proxy(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Cluster]:
    """The nodes behind a proxy as it is shipped, and behind one that waits for the whole body."""
    if request.param == "streaming":
        yield cluster
        return
    ports = Ports(free_port(), free_port(), cluster.ports.staff, cluster.ports.nodes)
    balancer = start_balancer(ports, BUFFERED)
    with stopping(balancer):
        other = Cluster(balancer, cluster.nodes)
        other.erp = cluster.erp
        yield other


def assert_only_json(received: bytes) -> list[WireAnswer]:
    """Every answer in it; each is JSON with an error, and nothing is left over."""
    assert b"<html" not in received.lower()
    answers = answers_in(received)
    assert answers, received
    for answer in answers:
        assert answer.headers["content-type"] == "application/json"
        assert {"error", "error_description"} <= answer.json.keys()
    return answers


# --- Bytes that no library would send -------------------------------------------------------------

# nginx refuses most of them by itself. `|` is the end of a line, NAME the header Host.
LOGIN = b"POST /connect/token HTTP/1.1|NAME"
REFUSED = {
    "unknown method": b"NONSENSE /connect/token HTTP/1.1|NAME|",
    "method in small letters": b"post /connect/token HTTP/1.1|NAME|",
    "TRACE": b"TRACE /connect/token HTTP/1.1|NAME|",
    "CONNECT": b"CONNECT id.example.org:443 HTTP/1.1|NAME|",
    "CONNECT with a path": b"CONNECT /connect/token HTTP/1.1|NAME|",
    "OPTIONS *": b"OPTIONS * HTTP/1.1|NAME|",
    "HTTP/9.9": b"POST /connect/token HTTP/9.9|NAME|",
    "HTTP/2.0": b"POST /connect/token HTTP/2.0|NAME|",
    "HTTP/1.x": b"POST /connect/token HTTP/1.x|NAME|",
    "the preface of HTTP/2": b"PRI * HTTP/2.0||SM||",
    "no protocol": b"hello||",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03||",
    "NUL": b"\0" * 100 + b"||",
    "a header too long": LOGIN + b"X: " + b"a" * 40_000 + b"||",
    "a name too long": LOGIN + b"X" * 40_000 + b": a||",
    "too many headers": LOGIN + b"".join(b"X-%d: a|" % n for n in range(9000)) + b"|",
    "an address too long": b"GET /" + b"a" * 9_000 + b" HTTP/1.1|NAME|",
    "no Host": b"POST /connect/token HTTP/1.1|Content-Length: 0||",
    "two Hosts": LOGIN + b"NAME|",
    "an empty Host": b"POST /connect/token HTTP/1.1|Host:||",
    "a wrong Host": b"POST /connect/token HTTP/1.1|Host: a/b||",
    "a Host with NUL": b"POST /connect/token HTTP/1.1|Host: a\0b||",
    "a wrong address": b"GET http://[::1/ HTTP/1.1|NAME|",
    "a path above the root": b"GET /../../x HTTP/1.1|NAME|",
    "NUL in the path": b"GET /a\0b HTTP/1.1|NAME|",
    "a coded NUL in the path": b"GET /a%00b HTTP/1.1|NAME|",
    "half a code in the path": b"GET /%z HTTP/1.1|NAME|",
    "NUL in a header": LOGIN + b"X: a\0b||",
    "a bare line break in a header": LOGIN + b"X: a\rb||",
    "two lengths": LOGIN + b"Content-Length: 3|Content-Length: 3||abc",
    "a length below zero": LOGIN + b"Content-Length: -3||abc",
    "a length that is no number": LOGIN + b"Content-Length: abc||abc",
    "a length without end": LOGIN + b"Content-Length: " + b"9" * 40 + b"||",
    "a body too long": LOGIN + b"Content-Length: 90000||",
    "a length and chunks": LOGIN + b"Transfer-Encoding: chunked|Content-Length: 3||0||",
    "gzip": LOGIN + b"Transfer-Encoding: gzip||abc",
    "gzip, chunked": LOGIN + b"Transfer-Encoding: gzip, chunked||0||",
    "identity": LOGIN + b"Transfer-Encoding: identity||abc",
    "chunks of HTTP/1.0": b"POST /connect/token HTTP/1.0|NAMETransfer-Encoding: chunked||0||",
    "a chunk without a number": LOGIN + b"Transfer-Encoding: chunked||zz|abc|0||",
    "a chunk below zero": LOGIN + b"Transfer-Encoding: chunked||-3|abc|0||",
    "a chunk longer than it says": LOGIN + b"Transfer-Encoding: chunked||3|abcd|0||",
    "a chunk without end": LOGIN + b"Transfer-Encoding: chunked||" + b"f" * 15 + b"|abc",
    "a wrong chunk after a right one": LOGIN + b"Transfer-Encoding: chunked||3|a=b|zz|",
    "chunks too long": LOGIN + b"Transfer-Encoding: chunked||4000|" + b"a" * 16384 + b"||",
}


def refused(name: str, host: bytes = NAME) -> bytes:
    return REFUSED[name].replace(b"NAME", host + CLOSE).replace(b"|", b"\r\n")


@pytest.mark.gate
def test_whatever_the_bytes_the_answer_is_json(proxy: Cluster) -> None:
    for name in REFUSED:
        (answer,) = assert_only_json(proxy.on_the_wire(refused(name)))
        assert answer.status == (405 if name in ("TRACE", "CONNECT") else 400), name
        assert answer.json["error"] == "invalid_request"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json["error_description"].endswith(answer.headers["correlationid"])
        staff = refused(name, b"Host: staff.id.example.org\r\n")
        for answer in assert_only_json(proxy.on_the_wire(staff)):
            assert answer.status in (400, 403, 405, 413), name


@pytest.mark.parametrize("name", [b"DPoP", b"Authorization", b"User-Agent", b"Cookie"])
def test_a_proof_of_full_length_reaches_a_node_and_a_longer_header_does_not(
    cluster: Cluster, name: bytes
) -> None:
    request = START + CLOSE + b"Content-Length: 0\r\n" + name + b": "
    for length, is_passed_on in ((4096, True), (6200, False)):
        (answer,) = assert_only_json(cluster.on_the_wire(request + b"a" * length + b"\r\n\r\n"))
        by_proxy = "its first line, a header or its body is" in answer.json["error_description"]
        assert (answer.status, by_proxy) == (400, not is_passed_on)


@pytest.mark.gate
def test_a_caller_is_let_in_so_often_and_an_ipv6_network_is_one_caller() -> None:
    """No node runs, so who is let in is told 503; the numbers are others than the file's."""
    balancer = start_balancer(
        free_ports(),
        (r"rate=1000r/s", "rate=1r/m"),
        (r"burst=1000", "burst=2"),
        (r"limit_req_log_level", "limit_req_status 405; limit_req_log_level"),
        (r"server_tokens off;", "set_real_ip_from 127.0.0.0/8; real_ip_header X-Real-IP;"),
    )
    with stopping(balancer), Cluster(balancer, []).client() as client:

        def statuses(*addresses: str) -> list[int]:
            return [client.post(PATH, headers={"X-Real-IP": a}).status_code for a in addresses]

        for network, other in (("192.0.2.1", "192.0.2.2"), ("2001:db8:1:2::", "2001:db8:1:3::1")):
            hosts = [network] * 4 if "." in network else [f"{network}{n}" for n in range(1, 5)]
            assert statuses(*hosts, other) == [503, 503, 503, 405, 503]
        # One address could fill the disk with lines of what is not let in.
        logged = re.findall(r" /by-proxy/\S+ (\d+) ", (balancer.folder / "login.log").read_text())
        assert len(logged) >= 6
        assert set(logged) == {"503"}


def test_a_request_of_http_0_9_gets_its_json_without_headers(cluster: Cluster) -> None:
    received = cluster.on_the_wire(b"GET /nothing\r\n")
    assert b"<html" not in received.lower()
    assert b'"error"' in received


@pytest.mark.parametrize("host", [b"id.example.org", b"staff.id.example.org"])
def test_a_second_error_in_the_body_is_answered_in_json_too(cluster: Cluster, host: bytes) -> None:
    """Before nginx answers the first error it skips the body, and shows its own page for both."""
    for line in (
        "TRACE /",
        "CONNECT a:1",
        "POST /metrics",
        "POST /admin/",
        "POST /by-proxy/method",
    ):
        head = line.encode() + b" HTTP/1.1\r\nHost: " + host + b"\r\nTransfer-Encoding: chunked\r\n"
        (answer,) = assert_only_json(cluster.on_the_wire(head + CLOSE + b"\r\nzz\r\nabc"))
        assert (answer.status, answer.json["error"]) == (400, "invalid_request"), line


def test_a_condition_or_a_range_changes_no_answer_of_the_proxy(cluster: Cluster) -> None:
    for header in (b"If-Match: x", b"If-None-Match: *", b"Range: bytes=0-1", b"Expect: nonsense"):
        request = b"GET /metrics HTTP/1.1\r\n" + NAME + CLOSE + header + b"\r\n\r\n"
        (answer,) = assert_only_json(cluster.on_the_wire(request))
        assert (answer.status, answer.json["error"]) == (404, "not_found")


def test_no_status_of_nginx_has_its_html_page() -> None:
    # nginx closes without an answer after 408, 444 and 499.
    statuses = [status for status in range(400, 600) if status not in (408, 444, 499)]
    every = "".join(f"location = /try/{status} {{ return {status}; }}\n" for status in statuses)
    balancer = start_balancer(
        free_ports(), (r"(?m)^    location / \{", f"{every}    location / {{")
    )
    with stopping(balancer), Cluster(balancer, []).client(STAFF_ADDRESS) as client:
        for host in ({}, STAFF_HOST):
            answers = [client.get(f"/try/{status}", headers=host) for status in statuses]
            assert all(b"<" not in answer.content for answer in answers)
            shown = [answer for answer in answers if answer.content]
            assert len(shown) >= 30
            assert {a.headers["Content-Type"] for a in shown} == {"application/json"}
            assert all({"error", "error_description"} == a.json().keys() for a in shown)


# --- What is not public ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def careless(cluster: Cluster, services: StartService) -> Iterator[Cluster]:
    """A proxy in front of one node that serves everything, the staff pages too."""
    ports = free_ports(1)
    ports.nodes = [ports.nodes[0]] * 2
    settings = behind(ports) | {"PORT": str(ports.nodes[0]), "SERVE": "both"}
    node = services(cluster.nodes[0].environment["DATABASE_URL"], **settings)
    balancer = start_balancer(ports)
    with stopping(balancer):
        yield Cluster(balancer, [node])


def test_the_node_itself_serves_what_the_proxy_hides(careless: Cluster) -> None:
    for path in ("/admin/", "/signin/", "/health/ready", "/metrics"):
        answer = httpx.get(f"{careless.nodes[0].url}{path}", headers={"X-Forwarded-Proto": "https"})
        assert answer.status_code in (200, 302)


HIDDEN = (
    *("/metrics", "/health/ready", "/metrics?a=b", "/health/ready#x", "//metrics", "/%6detrics"),
    *("/x/../metrics", "/./metrics", "/health//ready", "/health/live/../ready", "/health%2fready"),
    *("http://id.example.org/metrics", "http://staff.id.example.org/metrics", "/admin/", "/admin"),
    *("//admin/", "/./admin/", "/%61dmin/", "/admin%2f", "/admin/login/", "/x/../admin/"),
    *("/admin/../health/live", "/admin/../connect/token", "/admin/x/../../y", "/admin?x"),
    *("/admin/%2e%2e/health/live", "/signin/", "/signin/?next=/", "/language/", "/static/x"),
    *("/admin;x/../", "http://id.example.org/admin/", "/by-proxy/unavailable"),
    *("/confirm/../admin/", "/confirm/%2e%2e/admin/", "/confirm//x"),
)
AMBIGUOUS = (  # no address is named in the answer
    *("//connect/tokens", "//connect/token/x", "//x/connect/token", "/connect//%74oken", "//"),
    *("//connect/token;x", "/connect/../connect/token", "//api/v1/me", "//connect/token/.."),
)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("method", "paths"), [("GET", HIDDEN), ("POST", HIDDEN), ("POST", AMBIGUOUS)]
)
def test_what_is_for_operators_and_staff_is_not_public(
    careless: Cluster, method: str, paths: tuple[str, ...]
) -> None:
    for path in paths:
        name = b"Host: staff.id.example.org\r\n" if "//staff." in path else NAME
        head = f"{method} {path} HTTP/1.1\r\n".encode() + name + CLOSE
        (answer,) = assert_only_json(careless.on_the_wire(head + b"Content-Length: 0\r\n\r\n"))
        assert (answer.status, answer.json["error"]) == (404, "not_found"), path
        assert "There is nothing at this path. Reference: " in answer.json["error_description"]


@pytest.mark.gate
@pytest.mark.parametrize("name", ["id.example.org", "mtls.id.example.org"])
def test_a_doubled_slash_is_not_passed_on_and_the_answer_names_the_right_address(
    careless: Cluster, name: str
) -> None:
    body = urlencode(careless.erp.form).encode()
    before = careless.events(careless.erp)
    for path, right in (
        *((path, f"{name}/connect/token") for path in ("//connect/token", "/connect//token")),
        *((path, f"{name}/connect/token") for path in ("//Connect/Token?a=b", "/connect///token/")),
        ("/connect//revocation#x", f"{name}/connect/revocation"),
        ("//connect/introspect", "id.example.org/connect/introspect"),
    ):
        head = f"POST {path} HTTP/1.1\r\nHost: {name}\r\n".encode() + CLOSE + FORM_TYPE
        request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        (answer,) = assert_only_json(careless.on_the_wire(request))
        assert (answer.status, answer.json["error"]) == (404, "not_found")
        text = f"There is nothing at this path. Send POST to https://{right} instead, exactly so"
        assert answer.json["error_description"].startswith(text)
        assert answer.json["error_description"].endswith(answer.headers["correlationid"])
        assert "location" not in answer.headers
    assert careless.events(careless.erp) == before


@pytest.mark.gate
def test_every_path_of_the_staff_pages_is_hidden() -> None:
    hidden = re.search(r"location ~ \^/\(\?:([\w|]+)\)", CONFIGURATION.read_text())
    assert hidden
    public = {str(path.pattern) for path in public_paths}
    first_parts = {
        str(p.pattern).split("/")[0] for p in staff_paths if str(p.pattern) not in public
    }
    assert {*first_parts, "static"} - {""} == set(hidden[1].split("|"))


# --- Both kinds of proxy --------------------------------------------------------------------------


@pytest.mark.gate
def test_a_login_is_a_token_however_its_body_comes(proxy: Cluster) -> None:
    body = urlencode(proxy.erp.form).encode()
    length = b"Content-Length: %d\r\n" % len(body)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    for request in (
        START + CLOSE + FORM_TYPE + length + b"\r\n" + body,
        START + CLOSE + FORM_TYPE + b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        START.replace(b"HTTP/1.1", b"HTTP/1.0") + FORM_TYPE + length + b"\r\n" + body,
    ):
        (answer,) = answers_in(proxy.on_the_wire(request))
        assert (answer.status, answer.json["token_type"]) == (200, "Bearer")


@pytest.mark.gate
def test_a_body_too_long_is_refused_in_the_same_words(proxy: Cluster) -> None:
    for size in (17_000, 60_000, 90_000):
        for content in (b"a" * size, (b"a" * 1000 for _ in range(size // 1000))):
            assert_proxy_answer(proxy.post(content), 400, "invalid_request", "16384")


@pytest.mark.gate
@pytest.mark.parametrize("name", [b"onbehalfof", b"On-Behalf-Of"])
def test_a_trailer_that_was_announced_as_onbehalfof_is_refused(proxy: Cluster, name: bytes) -> None:
    before = proxy.events(proxy.erp)
    request = with_trailer(proxy.erp, name + b": C1000000001\r\n", b"Trailer: " + name)
    (answer,) = answers_in(proxy.on_the_wire(request))
    assert (answer.status, answer.reason) == (400, "invalid_request")
    assert answer.headers["link"].endswith('/errors/malformed_on_behalf_of>; rel="help"')
    assert "it is sent as a trailer" in answer.json["error_description"]
    assert proxy.events(proxy.erp) == before


def test_nginx_drops_a_trailer_that_nobody_announced(proxy: Cluster) -> None:
    """What the node then gets has no trace of it (docs/security.md). Red once that has changed."""
    request = with_trailer(proxy.erp, b"onbehalfof: C1000000001\r\n")
    (answer,) = answers_in(proxy.on_the_wire(request))
    assert (answer.status, answer.headers["x-represented-taxpayer"]) == (200, TIN)


# --- Slow clients, and many -----------------------------------------------------------------------


def test_a_slow_body_is_answered_with_408_by_the_node(cluster: Cluster) -> None:
    """Each other deadline: tests/test_connection.py and tests/certificates/test_nginx_conf.py."""
    body = START + FORM_TYPE + b"Content-Length: 5000\r\n\r\na"
    (answer,) = assert_only_json(cluster.on_the_wire(body))
    assert (answer.status, answer.reason) == (408, "invalid_request")
    assert "too long to arrive" in answer.json["error_description"]


def test_idle_connections_beyond_every_place_cost_no_login(cluster: Cluster) -> None:
    """Nginx of these tests has 2 x 512 places: it closes idle connections when it needs one."""
    count = 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    with contextlib.ExitStack() as stack:
        for number in range(count):
            idle = socket.create_connection((HOST, cluster.ports.https), timeout=10)
            stack.callback(idle.close)
            if number % 50 == 0:
                began = time.monotonic()
                assert cluster.login(cluster.erp).status_code == 200
                assert time.monotonic() - began < 5 * slowness()
        for _ in range(20):
            assert cluster.login(cluster.erp).status_code == 200
