"""Where a request comes from and whether it came by HTTPS, also behind trusted proxies."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hmac import compare_digest
from ipaddress import IPv6Address, ip_network
from socket import AF_INET, inet_ntop, inet_pton

from tokens.client_auth.certificate import CertificateHeaders

SECRET_IN_META = "HTTP_X_PROXY_SECRET"
_LONGEST = 64  # of an address; the name of an interface may follow it
# Some proxies write the port of the client as well (as RFC 7239 section 6 does), or only brackets.
_WITH_PORT = re.compile(r"\[([^]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}", re.ASCII)
_IPV4_BYTES = 4


class TrustedProxies:
    """The proxies that are believed about addresses, schemes and certificates, and no others."""

    def __init__(self, networks: Iterable[str], secrets: Iterable[str] = ()) -> None:
        """`secrets`: with any, a certificate counts only with one of them."""
        self._secrets = tuple(secret.encode() for secret in secrets)
        parsed = [ip_network(network, strict=False) for network in networks]
        self._networks = [(n.version, int(n.netmask), int(n.network_address)) for n in parsed]
        self._read_hop = lru_cache(maxsize=1024)(self._hop_of)

    def trust(self, address: str) -> bool:
        """Whether a connection from this address is that of a trusted proxy."""
        return self._hop(address)[1]

    def source_address(self, meta: Mapping[str, str]) -> str | None:
        """The address of the last hop that is no trusted proxy; None if it cannot be known."""
        address, is_trusted = self._hop(meta.get("REMOTE_ADDR", ""))
        if is_trusted:
            for hop in reversed(meta.get("HTTP_X_FORWARDED_FOR", "").split(",")):
                named, is_trusted = self._hop(hop.strip())
                if named is None:
                    break  # what an untrusted party wrote further left is not believed
                address = named
                if not is_trusted:
                    break
        return address

    def is_secure(self, meta: Mapping[str, str], scheme: str) -> bool:
        """Whether the client's own connection was HTTPS; `scheme` is that of the last hop."""
        forwarded = meta.get("HTTP_X_FORWARDED_PROTO")
        if forwarded is not None and self._hop(meta.get("REMOTE_ADDR", ""))[1]:
            return forwarded.split(",")[-1].strip().lower() == "https"
        return scheme == "https"

    def certificate(self, meta: Mapping[str, str]) -> CertificateHeaders | None:
        """What the last hop, if it is a trusted proxy, reports of the client's certificate."""
        if not self._hop(meta.get("REMOTE_ADDR", ""))[1] or not self._has_secret(meta):
            return None
        reported = CertificateHeaders(
            client_cert=meta.get("HTTP_CLIENT_CERT", ""),
            escaped_pem=meta.get("HTTP_SSL_CLIENT_CERT", ""),
            verified=meta.get("HTTP_SSL_CLIENT_VERIFY", ""),
        )
        return None if reported.is_empty else reported

    def _has_secret(self, meta: Mapping[str, str]) -> bool:
        # Other processes may run on the machine of a proxy: its address is no proof.
        if not self._secrets:
            return True
        sent = meta.get(SECRET_IN_META, "").encode(errors="surrogatepass")
        return True in [compare_digest(sent, secret) for secret in self._secrets]  # always all

    def _hop(self, text: str) -> tuple[str | None, bool]:
        """The address, None if it is none, and whether it is that of a trusted proxy."""
        # What is remembered is small, so that a caller cannot fill the memory with long texts.
        return self._read_hop(text) if len(text) <= _LONGEST else (None, False)

    def _hop_of(self, text: str) -> tuple[str | None, bool]:
        address = _address(text)
        if address is None:
            return None, False
        shown, packed = address
        version, number = (4 if len(packed) == _IPV4_BYTES else 6), int.from_bytes(packed)
        is_trusted = any(v == version and number & mask == n for v, mask, n in self._networks)
        return shown, is_trusted


def _address(text: str) -> tuple[str, bytes] | None:
    """As it is shown and stored, and its bytes; None if it is none."""
    match = _WITH_PORT.fullmatch(text)
    # Without the zone, the name of an interface here (fe80::1%eth0): no database stores it.
    bare = (match[1] or match[2] if match else text).partition("%")[0]
    try:  # most are one, and so it is read in a tenth of the time
        packed = inet_pton(AF_INET, bare)
        return inet_ntop(AF_INET, packed), packed
    except (OSError, ValueError):
        pass
    try:
        ipv6 = IPv6Address(bare)
    except ValueError:
        return None
    address = ipv6.ipv4_mapped or ipv6
    return str(address), address.packed
