"""Certificates as a proxy reports them: that of a right client, and unusual ones."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from urllib.parse import quote_from_bytes

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

SUBJECT = "CN=erp,O=Fuzz,C=MY"
_FROM, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)
# "No well-defined expiration date" (RFC 5280 section 4.1.2.5).
_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_NAMES = (
    x509.DNSName("erp.example.org"),
    x509.UniformResourceIdentifier("https://erp.example.org/"),
    x509.RFC822Name("erp@example.org"),
    x509.IPAddress(ip_address("10.0.0.1")),
    x509.DirectoryName(x509.Name.from_rfc4514_string("CN=x")),
    x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    x509.OtherName(x509.ObjectIdentifier("1.2.3"), b"\x05\x00"),
)


@cache
def certificates() -> tuple[bytes, ...]:
    """As DER; the first one is that of the right client."""
    return (
        _issue(),
        _issue(until=_NEVER),
        _issue("", _NAMES),
        _issue(SUBJECT, _NAMES),
        _issue("CN=x,CN=y+O=z,2.5.4.97=#0c0141"),
        _issue("", [x509.DNSName(f"erp-{number}.example.org") for number in range(33)]),
        _issue(until=datetime(2021, 1, 1, tzinfo=UTC)),
        _issue(begins=datetime(2089, 1, 1, tzinfo=UTC)),
        _issue("", [x509.UniformResourceIdentifier("https://x/" + "y" * 7_000)]),
    )


def escaped_pem(der: bytes) -> bytes:
    """As nginx writes it in `$ssl_client_escaped_cert`."""
    text = base64.b64encode(der)
    body = b"".join(text[at : at + 64] + b"\n" for at in range(0, len(text), 64))
    pem = b"-----BEGIN CERTIFICATE-----\n%b-----END CERTIFICATE-----\n" % body
    return quote_from_bytes(pem, safe="").encode()


def rfc9440(der: bytes) -> bytes:
    """As other proxies write it in `Client-Cert`."""
    return b":" + base64.b64encode(der) + b":"


def _issue(
    subject: str = SUBJECT,
    sans: Sequence[x509.GeneralName] = (),
    begins: datetime = _FROM,
    until: datetime = _UNTIL,
) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(b"x" * 32)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name.from_rfc4514_string(subject))
        .issuer_name(x509.Name.from_rfc4514_string("CN=authority"))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(until)
    )
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=not subject)
    return builder.sign(key, None).public_bytes(Encoding.DER)
