"""The subject of a certificate as text (RFC 4514), and which are equal (RFC 5280 7.1). Pure."""

import json
import unicodedata

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

# Names of attributes that authorities for companies use, beyond those of RFC 4514 section 3; as
# OpenSSL writes them. Anything else is written by its number.
_NAMES = {
    NameOID.EMAIL_ADDRESS: "emailAddress",
    NameOID.SERIAL_NUMBER: "serialNumber",
    NameOID.ORGANIZATION_IDENTIFIER: "organizationIdentifier",
    NameOID.BUSINESS_CATEGORY: "businessCategory",
    NameOID.POSTAL_CODE: "postalCode",
    NameOID.GIVEN_NAME: "GN",
    NameOID.SURNAME: "SN",
    NameOID.TITLE: "title",
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "street",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_OTHER_SPELLINGS = {"E": NameOID.EMAIL_ADDRESS, "EMAIL": NameOID.EMAIL_ADDRESS}


class _Attributes(dict[str, ObjectIdentifier]):
    """By name, whose letters may be small or capital (RFC 4512 section 2.5)."""

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        return super().get(key.lower(), default)


_OIDS = _Attributes(
    {name.lower(): oid for oid, name in _NAMES.items()}
    | {name.lower(): oid for name, oid in _OTHER_SPELLINGS.items()}
)


def parse_dn(text: str) -> x509.Name:
    """A distinguished name as RFC 4514 writes it: the most specific part first.

    Raises ValueError.
    """
    return x509.Name.from_rfc4514_string(text.removeprefix("subject=").strip(), _OIDS)


def format_dn(name: x509.Name) -> str:
    """The same as text, with names of attributes that OpenSSL knows."""
    return name.rfc4514_string(_NAMES)


def canonical_dn(name: x509.Name) -> str:
    """The same text for all names that are the same.

    Capital letters and the number of blanks make no difference; the order of the parts does, but
    not that of the attributes within one part.
    """
    return json.dumps(
        [
            sorted([attribute.oid.dotted_string, _prepared(attribute.value)] for attribute in rdn)
            for rdn in name.rdns
        ]
    )


def _prepared(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return f"#{value.hex()}"
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
