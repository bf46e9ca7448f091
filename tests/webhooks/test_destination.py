"""Where nothing is sent: addresses inside of our networks, URLs that hide something."""

import pytest

from identity.webhooks.destination import Destination, NotAllowed, check_host, is_allowed, read_url

OURS = ["10.20.0.0/24", "fd00::/64"]


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://portal.example.org", Destination(True, "portal.example.org", 443, "/")),
        ("https://h.example:8443/a/b?c=d", Destination(True, "h.example", 8443, "/a/b?c=d")),
        ("https://[2606:2800::1]/x", Destination(True, "2606:2800::1", 443, "/x")),
    ],
)  # fmt: skip
def test_a_right_url_is_read(url: str, read: Destination) -> None:
    assert read_url(url, []) == read


@pytest.mark.parametrize(
    "url",
    [
        *("", "portal.example.org", "ftp://portal.example.org/", "file:///etc/passwd", "https://"),
        *("https:///x", "https://[::1/", "http://portal.example.org/", f"https://x/{'x' * 2_000}"),
        *(f"https://{user}@portal.example.org/" for user in ("u", "u:p", ":")),
        *(f"https://portal.example.org{rest}" for rest in ("/#x", ":0/", ":99999/", "/ x")),
        *(f"https://portal.example.org/{rest}" for rest in ("\u00e9", "\r\nHost: other")),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(NotAllowed):
        read_url(url, [])


def test_http_is_for_networks_that_operators_allow() -> None:
    assert read_url("http://portal.example.org/x", OURS).port == 80


NEVER = [
    "10.0.0.1",
    "127.1",
    "0x7f000001",
    "[fd01::1]",
    "p",
    "localhost",
    "a.localhost.",
    "x.LOCAL",
]


@pytest.mark.parametrize("host", NEVER)
def test_a_host_that_no_resolver_can_make_public_is_refused_at_once(host: str) -> None:
    with pytest.raises(NotAllowed):
        check_host(read_url(f"https://{host}/", []), [])
    check_host(read_url("https://portal.example.org/", []), [])


def test_of_networks_that_operators_allow_any_name_may_be() -> None:
    for host in ("10.20.0.7", "portal", "hub.internal"):
        check_host(read_url(f"http://{host}/", OURS), OURS)
    for host in ("10.21.0.7", "localhost", "127.1"):
        with pytest.raises(NotAllowed):
            check_host(read_url(f"https://{host}/", OURS), OURS)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_public_addresses_may_be_used(address: str) -> None:
    assert is_allowed(address, is_https=True, allowed_networks=[])


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),  # noqa: S104 - refused
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd12:3456::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "2001:db8::1"),
        # Behind these is an IPv4 address.
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::"),
        *("::7f00:1", "::a00:1", "::ffff:0:7f00:1"),
        # Local, but not to Python: site-local, and what no network routes.
        *("fec0::1", "fe00::1", "5f00::1", "4000::1", "3fff::1"),
        *("192.0.0.9", "192.88.99.1"),  # the nearest NAT or relay
        "",
        "localhost",
        "127.1",
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(address, is_https=True, allowed_networks=OURS)


def test_of_networks_that_operators_allow_each_address_may_be_used() -> None:
    for address in ("10.20.0.255", "::ffff:10.20.0.1", "fd00::1"):
        assert is_allowed(address, is_https=True, allowed_networks=OURS)
    for address in ("10.20.1.0", "fd00:0:0:1::1"):
        assert not is_allowed(address, is_https=True, allowed_networks=OURS)
