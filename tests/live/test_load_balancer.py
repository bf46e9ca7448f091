"""Two nodes behind the real nginx with `deploy/nginx.conf`: what ERP systems meet in production."""

import socket
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import pytest

from tests.introspection.api import INTROSPECT, REVOKE, claims_of
from tests.live.cluster import CLIENT, STAFF_HOST, Cluster, assert_proxy_answer
from tests.self_service.calls import CREDENTIALS, PERMISSIONS, REVOKE_LAST
from tests.servers.nginx import HOST, STAFF_ADDRESS, free_ports, start_balancer
from tests.servers.processes import stopping, until
from tests.support.erp import FORM, PATH, Erp
from tests.support.over_http import SIGN_IN, send_form

pytestmark = [pytest.mark.processes, pytest.mark.gate]


def jti_of(answer: httpx.Response) -> str:
    return str(claims_of(answer.json()["access_token"])["jti"])


def test_staff_sign_in_at_an_address_with_a_port(cluster: Cluster) -> None:
    name = f"{STAFF_HOST['Host']}:{cluster.ports.https}"
    with cluster.client(STAFF_ADDRESS) as browser:
        browser.headers["Host"] = name
        for origin, status in ((f"https://{name}", 200), ("https://example.org", 403)):
            answer = send_form(browser, SIGN_IN, origin, login="boss", password="wrong")
            assert answer.status_code == status


def test_the_confirm_page_is_public_and_nothing_else_of_the_staff(cluster: Cluster) -> None:
    """From any network; a login node does not have it."""
    path = f"/confirm/{uuid4()}"
    with cluster.client() as browser:
        page = browser.get(path)
        assert (page.status_code, page.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
        assert "Requests are confirmed in the portal of the tax authority." in page.text
        for other in ("/confirm/", f"{path}/x", f"{path}/../../admin/", "/confirm/admin/"):
            answer = browser.get(other)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    forwarded = {"X-Forwarded-Proto": "https"}
    assert httpx.get(f"{cluster.nodes[0].url}{path}", headers=forwarded).status_code == 404


def test_a_client_sees_and_ends_its_own_secret_through_the_proxy(cluster: Cluster) -> None:
    erp = cluster.new_erp(6)
    bearer = {"Authorization": f"Bearer {cluster.login(erp).json()['access_token']}"}
    with cluster.client() as client:
        forged = bearer | {"X-Forwarded-For": "203.0.113.7"}
        seen = client.get(CREDENTIALS, headers=forged).json()
        assert (seen["client_id"], seen["source_address"]) == (erp.client_id, CLIENT)
        page = client.get(f"{PERMISSIONS}?taxpayer=C1%3AR-00001&limit=5", headers=bearer)
        assert page.json()["error"] == "invalid_request"  # the service's own 400
        answers = [
            client.delete(CREDENTIALS, headers=bearer),
            client.delete(REVOKE_LAST, headers=bearer),
            client.delete(REVOKE_LAST, headers=bearer),
        ]
    assert [answer.status_code for answer in answers] == [409, 200, 401]
    assert [len(answer.headers.get_list("correlationId")) for answer in answers] == [1, 1, 1]
    assert cluster.login(erp).json()["error"] == "invalid_client"


def test_a_login_over_http_is_refused_whatever_it_claims(cluster: Cluster) -> None:
    before, erp = cluster.events(cluster.erp), cluster.erp
    for port in (cluster.ports.http, cluster.ports.https):  # plain HTTP to the port of TLS, too
        for claimed in ({}, {"X-Forwarded-Proto": "https"}):
            answer = httpx.post(f"http://{HOST}:{port}{PATH}", data=erp.form, headers=claimed)
            assert_proxy_answer(answer, 400, "invalid_request", "without HTTPS")
            assert port == cluster.ports.https or answer.reason_phrase == "invalid_request"
    assert cluster.events(erp) == before


def test_where_a_client_says_it_comes_from_is_not_believed(cluster: Cluster) -> None:
    for claimed in ("203.0.113.9", "203.0.113.9, 127.0.0.1", "127.0.0.1"):
        answer = cluster.login(cluster.erp, **{"X-Forwarded-For": claimed, "X-Real-IP": claimed})
        assert cluster.events(cluster.erp)[jti_of(answer)] == CLIENT


def test_the_limit_and_the_record_are_exact_over_both_nodes(cluster: Cluster) -> None:
    erp = cluster.new_erp(20)
    with ThreadPoolExecutor(8) as threads, cluster.client() as client:
        answers = list(threads.map(lambda _: client.post(PATH, data=erp.form), range(60)))
    assert Counter(answer.status_code for answer in answers) == {200: 20, 429: 40}
    assert {jti_of(a) for a in answers if a.status_code == 200} == set(cluster.events(erp))
    assert all(erp.client_id in node.log for node in cluster.nodes)  # each answered some of them


def test_a_client_that_offers_http_2_is_answered_with_a_reason_phrase(cluster: Cluster) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection((HOST, cluster.ports.https), timeout=30) as plain,
        tls.wrap_socket(plain) as connection,
    ):
        assert connection.selected_alpn_protocol() == "http/1.1"


def test_a_header_that_was_meant_as_onbehalfof_is_no_login_through_the_proxy(
    cluster: Cluster,
) -> None:
    """Also where nginx itself does not take it for a name, and answers."""
    body = urlencode(cluster.erp.form)
    before = cluster.events(cluster.erp)
    names = ("On-Behalf-Of", "on_behalf_of", "*onbehalfof*", "onbehalf\xffof", "onbehalfof ")
    for name in (*names, "onbehalfof\0", " onbehalfof"):
        answer = cluster.on_the_wire(
            f"POST {PATH} HTTP/1.1\r\nHost: id.example.org\r\nContent-Type: {FORM}\r\n"
            f"Content-Length: {len(body)}\r\n{name}: C1000000001\r\n"
            f"Connection: close\r\n\r\n{body}".encode("latin-1")
        )
        assert answer.startswith(b"HTTP/1.1 400 "), name
        assert b"access_token" not in answer
        by_node = name in names[:4]
        reason = "malformed_on_behalf_of" if by_node else "malformed_request"
        assert f'/errors/{reason}>; rel="help"\r\n'.encode() in answer, name
        assert (b"The header onbehalfof is wrong" in answer) == by_node
    assert cluster.events(cluster.erp) == before


def test_the_page_of_a_reason_is_public_through_the_proxy(cluster: Cluster) -> None:
    link = cluster.post("grant_type=x").headers["Link"]
    with cluster.client() as client:
        page = client.get(link.partition("<")[2].partition(">")[0])
    assert page.status_code == 200
    assert "<h1>Parameter missing</h1>" in page.text


def test_a_wrong_method_is_refused_with_json(cluster: Cluster) -> None:
    for method in ("GET", "PUT", "DELETE", "TRACE"):
        with cluster.client() as client:
            answer = client.request(method, PATH)
        assert_proxy_answer(answer, 405, "invalid_request", "POST only")
        assert answer.headers["Allow"] == "POST"


def test_without_any_node_the_proxy_answers_as_the_service_would() -> None:
    balancer, erp = start_balancer(free_ports()), Erp("ci_test_x", "cs_test_of-nobody")
    with stopping(balancer):
        cluster = Cluster(balancer, [])
        # A secret in the query is refused when a node answers; here it must not reach a log either.
        with cluster.client() as client:
            answers = [
                cluster.login(erp),
                client.post(f"{PATH}?client_secret={erp.client_secret}", data=erp.form),
            ]
        for answer in answers:
            assert_proxy_answer(answer, 503, "temporarily_unavailable", "try again")
            assert 5 <= int(answer.headers["Retry-After"]) <= 60
            log_with(answer.headers["correlationId"], cluster)
        assert erp.client_secret not in balancer.log


def test_the_proxys_log_names_each_login_and_keeps_no_query(cluster: Cluster) -> None:
    erp = cluster.erp
    with cluster.client() as client:
        answer = client.post(f"{PATH}?client_secret={erp.client_secret}", data=erp.form)
    assert_proxy_answer(answer, 400, "invalid_request", "query")
    log = log_with(answer.headers["correlationId"], cluster)
    assert f"{CLIENT} POST {PATH} 400 " in log
    assert erp.client_secret not in log


def log_with(reference: str, cluster: Cluster) -> str:
    """The proxy's log once it has this line: it writes a line after the answer has left."""
    until(lambda: reference in cluster.balancer.log)
    return cluster.balancer.log


def test_the_proxy_passes_both_on(cluster: Cluster) -> None:
    with cluster.client() as client:
        for path in (INTROSPECT, REVOKE):
            answer = client.post(path, data={"token": "x"})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
            assert "parameter client_id is missing" in answer.json()["error_description"]
            wrong = client.post(path, data=cluster.erp.form | {"token": "x", "client_id": "x"})
            assert (wrong.status_code, wrong.reason_phrase) == (401, "invalid_client")
            assert wrong.headers["WWW-Authenticate"].startswith("Basic")
    plain = httpx.post(f"{cluster.ports.http_url}{REVOKE}", data=cluster.erp.form | {"token": "x"})
    assert "without HTTPS" in plain.json()["error_description"]
