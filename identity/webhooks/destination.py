"""Where a message may be sent: no address inside of our own networks (SSRF), no path without TLS.

A name is looked up when the connection is made, and the very address that was checked is connected
to: what the name means a moment later does not matter. Pure.
"""

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

LONGEST_URL = 2_000
_PORTS = {"http": 80, "https": 443}
# All of IPv6 that is routed on the internet. Python takes the rest for public, too: site-local
# addresses (fec0::/10), and those with an IPv4 address in them (::127.0.0.1, ::ffff:0:127.0.0.1).
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Answered by the nearest machine that takes them, which may be one of ours: a NAT, a 6to4 relay.
_ANYCAST = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
# For documentation (RFC 9637), and 6to4, behind which is an IPv4 address: public to Python 3.11.
# NAT64 is outside of the global unicast addresses, and Teredo is not public to Python either.
_CLOSED = (IPv6Network("3fff::/20"), IPv6Network("2002::/16"))

_NEVER_PUBLIC = frozenset({"internal", "invalid", "local", "onion", "test"})  # RFC 6761 and so on


class NotAllowed(ValueError):
    """A URL or an address to which nothing is sent; the text says why."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL in its parts; `target` is path and query."""

    is_https: bool
    host: str
    port: int
    target: str


def read_url(url: str, allowed_networks: Collection[str]) -> Destination:
    """Raises NotAllowed with what is wrong with the URL; http is only for `allowed_networks`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotAllowed("it is no URL") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise NotAllowed("it must begin with https:// and name a host")
    if not (url.isascii() and url.isprintable()) or " " in url or len(url) > LONGEST_URL:
        raise NotAllowed(f"it must be at most {LONGEST_URL} ASCII characters without blanks")
    if parts.username is not None or parts.fragment:
        raise NotAllowed("it must have no user, no password and no #")
    if port == 0:
        raise NotAllowed("its port cannot be 0")
    if parts.scheme == "http" and not allowed_networks:
        raise NotAllowed("it must begin with https://")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(
        parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], target
    )


def check_host(to: Destination, allowed_networks: Collection[str]) -> None:
    """Raises NotAllowed if nothing is ever sent there, whatever a look-up of the name says."""
    if _is_never_allowed(to.host, to.is_https, allowed_networks):
        raise NotAllowed("nothing is ever sent to this host: it is not public")


def _is_never_allowed(host: str, is_https: bool, allowed_networks: Collection[str]) -> bool:
    last = host.rstrip(".").rpartition(".")[2].lower()
    if last == "localhost":
        host = "127.0.0.1"
    elif not (":" in host or last[:1].isdigit()):  # a resolver reads 127.1 as an address
        return not allowed_networks and ("." not in host or last in _NEVER_PUBLIC)
    return not is_allowed(host, is_https=is_https, allowed_networks=allowed_networks)


def is_allowed(address: str, *, is_https: bool, allowed_networks: Collection[str]) -> bool:
    """Whether a message may be sent to this address, which a host name means now.

    Of `allowed_networks` each address is, also without TLS; of all others the public ones with it.
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if any(ip in ip_network(network) for network in allowed_networks):
        return True
    return is_https and _is_public(ip)


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if ip.is_multicast or not ip.is_global:
        return False
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _ANYCAST)
    return ip in _GLOBAL_UNICAST and not any(ip in network for network in _CLOSED)
