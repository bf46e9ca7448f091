"""Whose X-Forwarded-For and X-Forwarded-Proto are believed: every case as a row of a table."""

import tracemalloc
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from pytest_django import Settings

from identity.middleware import apply_forwarded_headers
from tokens.operations.asgi import _meta
from tokens.request.arrival import receive
from tokens.request.proxies import TrustedProxies

# One address, a network, and one written as an address within it.
TRUSTED = ["10.0.0.5", "192.168.0.0/24", "2001:db8::7/64"]
PROXY, INNER_PROXY, IPV6_PROXY = "10.0.0.5", "192.168.0.9", "2001:db8::1"
CLIENT, STRANGER = "203.0.113.7", "198.51.100.1"


@dataclass(frozen=True)
class Case:
    claim: str
    peer: str
    forwarded_for: str | None
    source: str | None


CASES = [
    Case("without a proxy it is the peer", CLIENT, None, CLIENT),
    Case("a stranger is not believed", STRANGER, CLIENT, STRANGER),
    Case("a stranger who names a proxy is not believed", STRANGER, PROXY, STRANGER),
    Case("a trusted proxy is believed", PROXY, CLIENT, CLIENT),
    Case("a network written as an address within it", IPV6_PROXY, CLIENT, CLIENT),
    Case("an address beside a network is a stranger", "192.168.1.9", CLIENT, "192.168.1.9"),
    Case("a trusted proxy without the header is the source", PROXY, None, PROXY),
    Case("a trusted proxy with an empty header is the source", PROXY, "", PROXY),
    Case("what the client wrote itself is further left", PROXY, f"{STRANGER}, {CLIENT}", CLIENT),
    Case("a chain of trusted proxies", PROXY, f"{CLIENT}, {INNER_PROXY}", CLIENT),
    Case("a chain of nothing but proxies ends at its first", PROXY, INNER_PROXY, INNER_PROXY),
    Case("a last hop that is no address", PROXY, f"{CLIENT}, unknown", PROXY),
    Case("nothing left of a hop that is no address is believed", PROXY,
         f"{CLIENT}, unknown, {INNER_PROXY}", INNER_PROXY),
    Case("a hop with a port", PROXY, f"{CLIENT}:4711", CLIENT),
    Case("what the client wrote with a port is further left", PROXY, f"{STRANGER}:1, {CLIENT}:2",
         CLIENT),
    Case("a hop without its port", PROXY, f"{CLIENT}:", PROXY),
    Case("a hop with a port that is none", PROXY, f"{CLIENT}:123456", PROXY),
    Case("a hop with a port in other digits", PROXY, f"{CLIENT}:\u0661", PROXY),
    Case("an IPv4 peer in IPv6 notation", f"::ffff:{PROXY}", CLIENT, CLIENT),
    Case("an IPv4 hop in IPv6 notation", PROXY, f"::ffff:{CLIENT}", CLIENT),
    Case("an IPv6 client", PROXY, "2001:DB8:1::0001", "2001:db8:1::1"),
    Case("a proxy in a chain in IPv6 notation", PROXY, f"{CLIENT}, ::ffff:{INNER_PROXY}", CLIENT),
    Case("an IPv6 hop with a port", PROXY, "[2001:db8:1::1]:4711", "2001:db8:1::1"),
    Case("half of the brackets", PROXY, "[2001:db8:1::1", PROXY),
    Case("an IPv6 hop whose port has no brackets is another address", PROXY, "2001:db8::1:4711",
         "2001:db8::1:4711"),
    Case("an address of an interface is stored without its name", PROXY, "fe80::1%eth0", "fe80::1"),
    Case("a name of an interface up to 64 characters in all", PROXY, f"{'fe80::1%eth0':0<64}",
         "fe80::1"),
    Case("what is longer is no address", PROXY, f"{'fe80::1%eth0':0<65}", PROXY),
    Case("a peer that is too long for an address is not believed", f"{'fe80::1%eth0':0<65}", CLIENT,
         None),
    Case("an unknown proxy in a chain is the source", PROXY, f"{CLIENT}, {STRANGER}, {INNER_PROXY}",
         STRANGER),
    Case("the client writes a thousand hops", PROXY, f"{STRANGER}," * 1000 + CLIENT, CLIENT),
    Case("an empty last hop", PROXY, f"{CLIENT},", PROXY),
    Case("a name is no address", PROXY, "localhost", PROXY),
    Case("leading zeros are no address", PROXY, "203.0.113.007", PROXY),
    Case("bytes that are no text", PROXY, "\x00\xff\x7f", PROXY),
    Case("a peer that is no address", "unix:", CLIENT, None),
]  # fmt: skip


def environment(peer: str, forwarded_for: str | None) -> dict[str, str]:
    header = {} if forwarded_for is None else {"HTTP_X_FORWARDED_FOR": forwarded_for}
    return {"REMOTE_ADDR": peer, **header}


@pytest.mark.parametrize("case", CASES, ids=[case.claim for case in CASES])
def test_where_a_request_comes_from(case: Case) -> None:
    meta = environment(case.peer, case.forwarded_for)
    assert TrustedProxies(TRUSTED).source_address(meta) == case.source


@pytest.mark.parametrize("peer", [PROXY, INNER_PROXY, IPV6_PROXY, CLIENT, STRANGER, "", "unix:"])
def test_whose_connection_is_that_of_a_proxy(peer: str) -> None:
    assert TrustedProxies(TRUSTED).trust(peer) == (peer in (PROXY, INNER_PROXY, IPV6_PROXY))


def test_without_trusted_proxies_no_peer_is_believed() -> None:
    proxies = TrustedProxies([])
    meta = {**environment(PROXY, CLIENT), "HTTP_X_FORWARDED_PROTO": "https"}
    assert proxies.source_address(meta) == PROXY
    assert not proxies.is_secure(meta, "http")


@pytest.mark.parametrize(
    ("peer", "forwarded_proto", "scheme", "is_secure"),
    [
        (CLIENT, None, "http", False),
        (CLIENT, None, "https", True),
        (STRANGER, "https", "http", False),
        (STRANGER, "http", "https", True),
        ("", "https", "http", False),
        (PROXY, None, "http", False),
        (PROXY, None, "https", True),
        (PROXY, "https", "http", True),
        (PROXY, " HTTPS ", "http", True),
        (PROXY, "http", "https", False),
        (PROXY, "", "https", False),
        (PROXY, "nonsense", "https", False),
        # The proxy's own word is the last one; the client may have written what is before it.
        (PROXY, "https, http", "https", False),
        (PROXY, "http, https", "http", True),
        (INNER_PROXY, "https", "http", True),
    ],
)
def test_whether_a_request_came_by_https(
    peer: str, forwarded_proto: str | None, scheme: str, is_secure: bool
) -> None:
    header = {} if forwarded_proto is None else {"HTTP_X_FORWARDED_PROTO": forwarded_proto}
    assert TrustedProxies(TRUSTED).is_secure({"REMOTE_ADDR": peer, **header}, scheme) is is_secure


def test_a_long_text_that_is_no_address_is_not_remembered() -> None:
    proxies = TrustedProxies(["10.0.0.0/8"])
    hops = [f"{number}{'x' * 10_000}" for number in range(200)]
    tracemalloc.start()
    try:
        for hop in hops:
            meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": f"{hop} "}
            assert proxies.source_address(meta) == "10.0.0.1"
        remembered, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert remembered < 100_000


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ([], "DPOP", None),
        ([("dpop", "a.b.c")], "DPOP", "a.b.c"),
        ([("dpop", "a.b.c"), ("dpop", "d.e.f")], "DPOP", "a.b.c,d.e.f"),
        ([("client-cert", "a"), ("client-cert", "b")], "CLIENT_CERT", "a,b"),
        ([("onbehalfof", "C1"), ("onbehalfof", "C1")], "ONBEHALFOF", "C1,C1"),
        ([("x-forwarded-for", STRANGER), ("x-forwarded-for", CLIENT)],
         "X_FORWARDED_FOR", f"{STRANGER},{CLIENT}"),
        ([("x-proxy-secret", "s")], "X_PROXY_SECRET", "s"),
        # One with an underscore is not the one with a hyphen.
        ([("ssl_client_cert", "x")], "SSL_CLIENT_CERT", None),
        ([("ssl_client_verify", "SUCCESS"), ("ssl-client-verify", "NONE")],
         "SSL_CLIENT_VERIFY", "NONE"),
    ],
)  # fmt: skip
def test_a_header_that_is_sent_twice_is_joined_and_a_misspelled_one_is_nothing(
    lines: list[tuple[str, str]], name: str, value: str | None
) -> None:
    assert meta_of(lines).get(f"HTTP_{name}") == value


def meta_of(lines: list[tuple[str, str]]) -> dict[str, str]:
    headers = [(name.encode(), text.encode()) for name, text in lines]
    scope = {"method": "POST", "query_string": b"", "scheme": "http", "client": ("127.0.0.1", 1)}
    return _meta(scope | {"headers": headers})


@pytest.mark.parametrize(
    ("trusted", "source"), [([], "127.0.0.1"), ([PROXY], "127.0.0.1"), (["127.0.0.1"], CLIENT)]
)
def test_the_source_is_the_one_that_the_proxies_of_the_settings_report(
    settings: Settings, trusted: list[str], source: str
) -> None:
    settings.TRUSTED_PROXIES = trusted
    meta = meta_of([("x-forwarded-for", STRANGER), ("x-forwarded-for", CLIENT)])
    arrival, _raw = receive(meta, b"", datetime.now(UTC))
    assert arrival.source_address == source


@pytest.mark.parametrize(
    ("peer", "sent", "address", "scheme"),
    [
        (PROXY, {}, PROXY, "http"),
        (PROXY, {"x-forwarded-for": CLIENT, "x-forwarded-proto": "https"}, CLIENT, "https"),
        (STRANGER, {"x-forwarded-for": CLIENT, "x-forwarded-proto": "https"}, STRANGER, "http"),
        ("", {"x-forwarded-for": CLIENT}, "", "http"),
    ],
)
def test_the_staff_pages_see_the_address_and_the_scheme_that_are_believed(
    settings: Settings, peer: str, sent: dict[str, str], address: str, scheme: str
) -> None:
    settings.TRUSTED_PROXIES = TRUSTED
    request = RequestFactory(headers=sent).get("/admin/", REMOTE_ADDR=peer)
    apply_forwarded_headers(lambda _: HttpResponse())(request)
    assert (request.META["REMOTE_ADDR"], request.scheme) == (address, scheme)
