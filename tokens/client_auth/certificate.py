"""The certificate of a client's connection, as a trusted proxy reports it (RFC 9440). Pure.

TLS ends at the proxy: it verifies that the client has the private key, and that an authority which
the operators trust signed the certificate. Here it is only read.
"""

import base64
import binascii
import hashlib
import re
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from taxpayers.certificates import UNREADABLE, subject_of
from taxpayers.facts.values import CERTIFICATE
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.refusals.table import ProtocolReason

MAX_DER_BYTES = 8 * 1024
SKEW = timedelta(seconds=10)  # by which the clock of the proxy may be off
_MAX_LENGTH = 3 * MAX_DER_BYTES  # of a header: percent-encoding triples a byte
_VERIFIED, _NO_CERTIFICATE = "SUCCESS", "NONE"
_RFC9440 = re.compile(r":([A-Za-z0-9+/]+={0,2}):")
_PEM = re.compile(
    rb"-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE-----\n?"
)


class CertificateFault(StrEnum):
    """Why no client can use a certificate; the registry was not asked."""

    NOT_VERIFIED = "certificate_not_verified"
    UNREADABLE = "certificate_unreadable"
    TOO_LONG = "certificate_too_long"
    TWICE = "certificate_twice"
    EXPIRED = "certificate_expired"
    NOT_YET_VALID = "certificate_not_yet_valid"


class CertificateHeaders(Value):
    """What a trusted proxy reports, as it came."""

    client_cert: Hidden[str] = ""  # RFC 9440 section 2.2
    escaped_pem: Hidden[str] = ""  # nginx's `$ssl_client_escaped_cert`
    verified: str = ""  # nginx's `$ssl_client_verify`

    @property
    def is_empty(self) -> bool:
        """Whether the client has sent no certificate."""
        return not (self.client_cert or self.escaped_pem) and self.verified in (
            "",
            _NO_CERTIFICATE,
        )


class ClientCertificate(Value):
    """A certificate that the proxy has verified."""

    lookup: Hidden[str]  # what its subject is looked up by
    thumbprint: str  # `x5t#S256` (RFC 8705 section 3.1)
    valid_from: datetime
    valid_until: datetime

    def check_time(self, at: datetime) -> None:
        """Raises Refused if it is not valid at this moment."""
        # Nothing is added to its moments: the last that there is means no end (RFC 5280 4.1.2.5).
        if at + SKEW < self.valid_from:
            raise refused(CertificateFault.NOT_YET_VALID)
        if at - SKEW > self.valid_until:
            raise refused(CertificateFault.EXPIRED)


def read_certificate(sent: CertificateHeaders) -> ClientCertificate:
    """The certificate in the headers of a trusted proxy. Raises Refused with the first fault."""
    if sent.verified != _VERIFIED:
        raise refused(CertificateFault.NOT_VERIFIED)
    if sent.client_cert and sent.escaped_pem:
        raise refused(CertificateFault.TWICE)
    if len(sent.client_cert or sent.escaped_pem) > _MAX_LENGTH:
        raise refused(CertificateFault.TOO_LONG)
    return _parsed(sent.client_cert, sent.escaped_pem)


def refused(fault: CertificateFault) -> Refused:
    """The refusal of a certificate with this fault, which every sender gets."""
    return Refused(ProtocolReason.MALFORMED_CREDENTIALS, parameter=CERTIFICATE, detail=fault)


# To parse one costs as much as to verify a signature, and an ERP system sends the same for a year.
@lru_cache(maxsize=256)
def _parsed(client_cert: str, escaped_pem: str) -> ClientCertificate:
    der = _der(client_cert, escaped_pem)
    if len(der) > MAX_DER_BYTES:
        raise refused(CertificateFault.TOO_LONG)
    try:
        certificate = x509.load_der_x509_certificate(der)
        lookup = subject_of(certificate).lookup
        valid_from, valid_until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except UNREADABLE:
        raise refused(CertificateFault.UNREADABLE) from None
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
    thumbprint = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return ClientCertificate(lookup, thumbprint, valid_from, valid_until)


def _der(client_cert: str, escaped_pem: str) -> bytes:
    try:
        if client_cert:
            match = _RFC9440.fullmatch(client_cert)
            encoded = match[1].encode() if match else b"?"
        else:
            pem = _PEM.fullmatch(unquote_to_bytes(escaped_pem))
            encoded = pem[1].replace(b"\n", b"") if pem else b"?"
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise refused(CertificateFault.UNREADABLE) from None
