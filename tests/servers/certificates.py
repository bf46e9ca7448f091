"""An authority that issues certificates to clients of the tests, made by the tests themselves."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from jwt.utils import base64url_encode

DAY = timedelta(days=1)
# Where its clients come from, and what they call.
MTLS_URL = "https://mtls.id.example.org"
PROXY, STRANGER = "127.0.0.1", "203.0.113.7"


@dataclass
class IssuedCertificate:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def thumbprint(self) -> str:
        return base64url_encode(self.certificate.fingerprint(hashes.SHA256())).decode()

    @property
    def escaped(self) -> str:
        """As nginx writes it in `$ssl_client_escaped_cert`."""
        return quote(self.pem, safe="")

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        files = folder / f"{name}.pem", folder / f"{name}.key"
        files[0].write_text(self.pem)
        files[1].write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(files[0]), str(files[1])


def self_signed(name: str, *sans: x509.GeneralName, days: int = 1) -> IssuedCertificate:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(subject, subject, key, now - DAY, (days + 1) * DAY + timedelta(minutes=5))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), *sans]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return IssuedCertificate(certificate, key)


class Authority:
    def __init__(self, name: str) -> None:
        self._own = self_signed(name, days=3650)
        self.pem = self._own.pem

    def issue(
        self,
        subject: str = "CN=erp,O=Kedai Runcit Aminah,C=MY",
        *sans: x509.GeneralName,
        begins: datetime | None = None,
        lives: timedelta = DAY,
    ) -> IssuedCertificate:
        """A certificate for this subject (RFC 4514) with these alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        begins = begins or datetime.now(UTC) - timedelta(minutes=5)
        name = x509.Name.from_rfc4514_string(subject)
        builder = _builder(name, self._own.certificate.subject, key, begins, lives)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=not subject)
        return IssuedCertificate(builder.sign(self._own.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Any, begins: datetime, lives: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + lives)
    )
