"""The certificate of a client's connection, as the proxy in front of an API reports it (RFC 8705).

The proxy must verify certificates, set these headers on every request, and delete what a client
sends in them: RFC 9440's `Client-Cert`, or `SSL-Client-Cert` with `$ssl_client_escaped_cert` of
nginx; and in both cases `SSL-Client-Verify` with `$ssl_client_verify`: `SUCCESS` if it is verified.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address, ip_network
from urllib.parse import unquote_to_bytes

CLIENT_CERT, ESCAPED, VERIFIED = "Client-Cert", "SSL-Client-Cert", "SSL-Client-Verify"
_MAX_LENGTH = 24 * 1024
_RFC9440 = re.compile(r":([A-Za-z0-9+/]+={0,2}):")
_PEM = re.compile(
    rb"-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE-----\n?"
)


class ClientCertificates:
    """Reads the certificate of a request. `trusted_proxies` are addresses or networks.

    Raises ValueError for what is neither.
    """

    def __init__(self, trusted_proxies: Iterable[str]) -> None:
        self._networks = [ip_network(proxy, strict=False) for proxy in trusted_proxies]

    def of_request(
        self, peer: str | None, headers: Callable[[str], Sequence[str | None]]
    ) -> bytes | None:
        """The certificate (DER) with which the client connected to a trusted proxy.

        `peer` is the address of the connection to this API, and `headers` gives all values of a
        header. None if there is none, or if it does not count: the proxy is not trusted, it has not
        verified the certificate, or the headers are doubled or malformed.
        """
        if not self._is_trusted(peer):
            return None
        client_cert, escaped, verified = (
            _one(headers(name)) for name in (CLIENT_CERT, ESCAPED, VERIFIED)
        )
        if verified != "SUCCESS" or bool(client_cert) == bool(escaped):
            return None
        if len(client_cert or escaped or "") > _MAX_LENGTH:
            return None
        return _from_rfc9440(client_cert) if client_cert else _from_pem(escaped or "")

    def _is_trusted(self, peer: str | None) -> bool:
        try:
            address = ip_address((peer or "").partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)


def thumbprint_of(certificate: bytes) -> str:
    """`x5t#S256` of a certificate (DER): RFC 8705 section 3.1."""
    return base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).rstrip(b"=").decode()


def _one(values: Sequence[str | None]) -> str | None:
    """The value of a header that came once; frameworks join those that came twice by a comma."""
    sent = [value for value in values if value]
    return sent[0] if len(sent) == 1 else ("," if sent else None)


def _from_rfc9440(text: str) -> bytes | None:
    match = _RFC9440.fullmatch(text)
    return _decoded(match[1].encode()) if match else None


def _from_pem(escaped: str) -> bytes | None:
    match = _PEM.fullmatch(unquote_to_bytes(escaped))
    return _decoded(match[1].replace(b"\n", b"")) if match else None


def _decoded(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
