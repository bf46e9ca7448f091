"""From which networks a client secret or a key may be used (RFC 4632, RFC 4291). Pure."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from taxpayers.actions import marked as _
from taxpayers.value import Value

MAX_NETWORKS = 20
Network = IPv4Network | IPv6Network
_IPV4_IN_IPV6 = IPv6Network("::ffff:0:0/96")
_LONGEST = 64  # of the text of a network


class NetworkFault(StrEnum):
    """What is wrong with a network that was entered. Marked for translation."""

    UNREADABLE = _(
        "{text} is not a network. Write an address and a prefix length, for example 203.0.113.0/24,"
        " 2001:db8::/32, or a single address."
    )
    HOST_BITS = _("{text} is not the first address of its network. Write {instead}.")
    EVERYWHERE = _(
        "{text} is every address. To allow logins from anywhere, give no network at all."
    )


class UnusableNetwork(ValueError):
    """No network that a secret can be limited to; `instead`: the one that was probably meant."""

    def __init__(self, fault: NetworkFault, text: str, instead: str = "") -> None:
        super().__init__(fault, text, instead)
        self.fault, self.text, self.instead = fault, text[:_LONGEST], instead


class LoginSource(Value):
    """Where a login comes from; None: its address cannot be known."""

    address: str | None


def read_networks(texts: Iterable[str]) -> list[str]:
    """The networks in CIDR notation, sorted, each once. Raises UnusableNetwork."""
    networks = {_read(text.strip()) for text in texts}
    return [str(n) for n in sorted(networks, key=lambda n: (n.version, n))]


def is_within(source: LoginSource, networks: Collection[str]) -> bool:
    """Whether the login comes from one of these; an address that is not known does not."""
    return source.address is not None and _is_within(source.address, tuple(networks))


@lru_cache(maxsize=1024)
def _is_within(address: str, networks: tuple[str, ...]) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    # A listener for both protocols reports an IPv4 client in this form.
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in _network(text) for text in networks)


@lru_cache(maxsize=1024)
def _network(text: str) -> Network:
    return ip_network(text)


def _read(text: str) -> Network:
    try:
        # The name of an interface (fe80::1%eth0) means something only on one machine.
        network = ip_network(text, strict=False) if "%" not in text else None
    except ValueError:
        network = None
    if network is None or len(text) > _LONGEST:
        raise UnusableNetwork(NetworkFault.UNREADABLE, text)
    try:
        ip_network(text)
    except ValueError:
        raise UnusableNetwork(NetworkFault.HOST_BITS, text, str(_as_ipv4(network))) from None
    network = _as_ipv4(network)
    if network.prefixlen == 0:
        raise UnusableNetwork(NetworkFault.EVERYWHERE, text)
    return network


def _as_ipv4(network: Network) -> Network:
    """IPv4 that was written as IPv6 (RFC 4291 section 2.5.5.2), as the addresses of logins are."""
    if isinstance(network, IPv6Network) and network.subnet_of(_IPV4_IN_IPV6):
        address = int(network.network_address) - int(_IPV4_IN_IPV6.network_address)
        return IPv4Network((address, network.prefixlen - _IPV4_IN_IPV6.prefixlen))
    return network
