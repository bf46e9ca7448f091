"""The subject of a client certificate, by which its owner is recognised (RFC 8705 2.1). Pure.

The subject is registered for a system user, and looked up by a hash as a secret is: so a
certificate can be renewed by its authority without a change in the registry.
"""

import hashlib
import json
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum

from cryptography import x509
from cryptography.x509.oid import NameOID

from taxpayers.actions import marked as _

TLS_CLIENT_AUTH = "tls_client_auth"  # the IANA registry's name of the method
MAX_TEXT_LENGTH = 20_000  # of a PEM file
MAX_NAME_LENGTH = 1_000
# What the library raises for a certificate that it cannot read.
UNREADABLE = (ValueError, x509.InvalidVersion)
_PREFIX = "tls$"
# Names of attributes that authorities for companies use, beyond those of RFC 4514 section 3, which
# the library knows; as OpenSSL writes them. Anything else is written by its number.
_NAMES = {
    NameOID.EMAIL_ADDRESS: "emailAddress",
    NameOID.SERIAL_NUMBER: "serialNumber",
    NameOID.ORGANIZATION_IDENTIFIER: "organizationIdentifier",
    NameOID.BUSINESS_CATEGORY: "businessCategory",
    NameOID.POSTAL_CODE: "postalCode",
    NameOID.GIVEN_NAME: "GN",
    NameOID.SURNAME: "SN",
    NameOID.TITLE: "title",
    NameOID.STREET_ADDRESS: "street",
}


class SubjectFault(StrEnum):
    """Why a text is no certificate whose subject can be registered. Marked for translation."""

    PRIVATE = _(
        "This is a PRIVATE key, and nothing was stored. Who has it can log in: the ERP system must"
        " make a new pair and have a new certificate issued."
    )
    CERTIFICATE = _(
        "This is no certificate. Give a PEM file that begins with -----BEGIN CERTIFICATE-----."
    )
    EMPTY = _(
        "The subject of the certificate is empty. The ERP system must have one issued that names"
        " its company there."
    )
    NOT_PRINTABLE = _("The subject of the certificate has characters that cannot be printed.")
    TOO_LONG = _("The subject of a certificate has at most 1000 characters here.")


class UnusableSubject(ValueError):
    """A text that has none. It is never part of the error: it may be a private key."""

    def __init__(self, fault: SubjectFault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Subject:
    """Its text for people (RFC 4514), and what it is looked up by, as a secret by its hash."""

    text: str
    lookup: str = field(repr=False)


def is_certificate_lookup(lookup: str) -> bool:
    """Whether what a credential is looked up by is the subject of a certificate."""
    return lookup.startswith(_PREFIX)


def subject_of(certificate: x509.Certificate) -> Subject:
    """The same `lookup` for all subjects that are the same (RFC 5280 section 7.1).

    Capital letters and the number of blanks make no difference; the order of the parts does, but
    not that of the attributes within one part. Raises one of UNREADABLE.
    """
    parts = [
        sorted([attribute.oid.dotted_string, _prepared(attribute.value)] for attribute in rdn)
        for rdn in certificate.subject.rdns
    ]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return Subject(certificate.subject.rfc4514_string(_NAMES), f"{_PREFIX}{digest}")


def _prepared(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return f"#{value.hex()}"
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def read_subject(pem: str) -> Subject:
    """The subject of a certificate in PEM, to register it. Raises UnusableSubject."""
    if "PRIVATE KEY" in pem:
        raise UnusableSubject(SubjectFault.PRIVATE)
    if len(pem) > MAX_TEXT_LENGTH:
        raise UnusableSubject(SubjectFault.CERTIFICATE)
    try:
        subject = subject_of(x509.load_pem_x509_certificate(pem.encode()))
    except UNREADABLE:
        raise UnusableSubject(SubjectFault.CERTIFICATE) from None
    if not subject.text:
        raise UnusableSubject(SubjectFault.EMPTY)
    if len(subject.text) > MAX_NAME_LENGTH:
        raise UnusableSubject(SubjectFault.TOO_LONG)
    if not subject.text.isprintable():
        raise UnusableSubject(SubjectFault.NOT_PRINTABLE)
    return subject
