"""The names in a client certificate by which its owner is recognised (RFC 8705 2.1.2). Pure.

A name is registered for a system user, and looked up by a hash as a secret is: so a certificate can
be renewed by its authority without a change in the registry.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from cryptography import x509

from taxpayers.certificates.subject import canonical_dn, format_dn, parse_dn

TLS_CLIENT_AUTH = "tls_client_auth"  # the IANA registry's name of the method
MAX_TEXT_LENGTH = 20_000  # of a PEM file
MAX_NAME_LENGTH = 1_000
# What the library raises for a certificate that it cannot read, beside ValueError.
UNREADABLE = (x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType)
_PREFIX = "tls$"
_DNS = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7E]+")
_EMAIL = re.compile(r"[\x21-\x3F\x41-\x7E]+@[A-Za-z0-9.-]+")


class NameKind(StrEnum):
    """The client metadata of RFC 8705 section 2.1.2 that are offered."""

    SUBJECT_DN = "tls_client_auth_subject_dn"
    SAN_DNS = "tls_client_auth_san_dns"
    SAN_URI = "tls_client_auth_san_uri"
    SAN_EMAIL = "tls_client_auth_san_email"


class NameFault(StrEnum):
    """Why a text is no name of a certificate."""

    PRIVATE = "private"
    CERTIFICATE = "certificate"
    EMPTY_SUBJECT = "empty_subject"
    SUBJECT_DN = "subject_dn"
    SAN_DNS = "san_dns"
    SAN_URI = "san_uri"
    SAN_EMAIL = "san_email"
    TOO_LONG = "too_long"


class UnusableName(ValueError):
    """A text that is no name. It is never part of the error: it may be a private key."""

    def __init__(self, fault: NameFault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class CertificateName:
    """One name: its kind, its text for people, and what two equal names have in common."""

    kind: NameKind
    text: str
    canonical: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.text}"

    @property
    def lookup(self) -> str:
        """What it is looked up by, where a secret is looked up by its hash; no hash begins so."""
        digest = hashlib.sha256(f"{self.kind}\n{self.canonical}".encode()).hexdigest()
        return f"{_PREFIX}{digest}"


def is_certificate_lookup(lookup: str) -> bool:
    """Whether what a credential is looked up by is a name of a certificate."""
    return lookup.startswith(_PREFIX)


def names_in(certificate: x509.Certificate) -> Iterator[CertificateName]:
    """All names by which its owner could be registered. Raises ValueError or one of UNREADABLE."""
    if certificate.subject.rdns:
        yield _subject(certificate)
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    for kind, of_type in _IN_CERTIFICATES.items():
        for text in found.value.get_values_for_type(of_type):
            yield CertificateName(kind, text, _CANONICAL[kind](text))


def read_name(text: str, kind: NameKind | None = None) -> CertificateName:
    """The name in a text. None: the text is a certificate (PEM), and the name is its subject.

    Raises UnusableName.
    """
    if "PRIVATE KEY" in text:
        raise UnusableName(NameFault.PRIVATE)
    if kind is None:
        return _subject_of_pem(text)
    text = text.strip()
    if len(text) > MAX_NAME_LENGTH:
        raise UnusableName(NameFault.TOO_LONG)
    if kind is NameKind.SUBJECT_DN:
        return _subject_of_text(text)
    canonical = _CANONICAL[kind](text)
    form, fault = _FORMS[kind]
    if not form.fullmatch(canonical):
        raise UnusableName(fault)
    return CertificateName(kind, canonical, canonical)


def _subject(certificate: x509.Certificate) -> CertificateName:
    subject = certificate.subject
    return CertificateName(NameKind.SUBJECT_DN, format_dn(subject), canonical_dn(subject))


def _subject_of_pem(text: str) -> CertificateName:
    if len(text) > MAX_TEXT_LENGTH:
        raise UnusableName(NameFault.CERTIFICATE)
    try:
        certificate = x509.load_pem_x509_certificate(text.encode())
        name = _subject(certificate)
    except (ValueError, *UNREADABLE):
        raise UnusableName(NameFault.CERTIFICATE) from None
    return _usable(name)


def _subject_of_text(text: str) -> CertificateName:
    try:
        subject = parse_dn(text)
    except ValueError:
        raise UnusableName(NameFault.SUBJECT_DN) from None
    return _usable(CertificateName(NameKind.SUBJECT_DN, format_dn(subject), canonical_dn(subject)))


def _usable(name: CertificateName) -> CertificateName:
    if not name.text:
        raise UnusableName(NameFault.EMPTY_SUBJECT)
    if len(name.text) > MAX_NAME_LENGTH:
        raise UnusableName(NameFault.TOO_LONG)
    if not name.text.isprintable():
        raise UnusableName(NameFault.SUBJECT_DN)
    return name


def _canonical_dns(text: str) -> str:
    return text.lower().removesuffix(".")


def _canonical_email(text: str) -> str:
    local, at, host = text.rpartition("@")
    return f"{local}{at}{host.lower()}"  # only the host is the same in small letters (RFC 5321)


_CANONICAL: Mapping[NameKind, Callable[[str], str]] = {
    NameKind.SAN_DNS: _canonical_dns,
    NameKind.SAN_URI: str,
    NameKind.SAN_EMAIL: _canonical_email,
}
_FORMS = {
    NameKind.SAN_DNS: (_DNS, NameFault.SAN_DNS),
    NameKind.SAN_URI: (_URI, NameFault.SAN_URI),
    NameKind.SAN_EMAIL: (_EMAIL, NameFault.SAN_EMAIL),
}
_IN_CERTIFICATES: Mapping[
    NameKind, type[x509.DNSName | x509.UniformResourceIdentifier | x509.RFC822Name]
] = {
    NameKind.SAN_DNS: x509.DNSName,
    NameKind.SAN_URI: x509.UniformResourceIdentifier,
    NameKind.SAN_EMAIL: x509.RFC822Name,
}
