"""In which buckets a caller is counted: numbers in a table of a fixed size (contract 1). Pure."""

import hashlib
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

NUMBER = 1 << 16  # of buckets of each kind

_IPV6_PREFIX = 64


class Buckets:
    """The same caller always has the same buckets; others may share them by chance.

    Keyed, so that an attacker cannot look for an innocent caller's bucket to fail in.
    """

    def __init__(self, key: bytes) -> None:
        """The key has at most 64 bytes."""
        self._key = key

    def of_pair(self, client_id: str, address: str | None) -> int:
        """Of failed logins with this id, as sent, from this address: an even number."""
        return 2 * self._hash(f"{client_id}\n{counted_address(address)}")

    def of_address(self, address: str | None) -> int:
        """Of failed logins from this address: an odd number."""
        return 2 * self._hash(counted_address(address)) + 1

    def of_rejections(self, address: str | None) -> int:
        """Of rejected requests from this address: a number behind those of failed logins."""
        return 2 * NUMBER + self._hash(counted_address(address))

    def _hash(self, caller: str) -> int:
        digest = hashlib.blake2b(caller.encode(), key=self._key, digest_size=4).digest()
        return int.from_bytes(digest) % NUMBER


@lru_cache(maxsize=1024)
def counted_address(address: str | None) -> str:
    """The address, or the network, that a caller is counted by; None: it has no address.

    An IPv6 address counts as its /64, which one customer holds as a whole (RFC 6177), and an IPv4
    address in IPv6 notation as itself. Raises ValueError for what is no address.
    """
    if address is None:
        return ""
    if ":" not in address:
        return address
    ipv6 = IPv6Address(address)
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(IPv6Network((int(ipv6), _IPV6_PREFIX), strict=False))
