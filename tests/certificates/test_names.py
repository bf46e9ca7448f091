"""Which names in certificates can be registered, and when two are the same. Pure."""

from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from taxpayers.certificates.names import (
    NameFault,
    NameKind,
    UnusableName,
    names_in,
    read_name,
)
from taxpayers.certificates.subject import canonical_dn, format_dn, parse_dn
from tests.certificates.certificate_erp import authority, certificate

DN, DNS, URI, EMAIL = NameKind
LONGEST = "a:" + "x" * 998


def fault_of(text: str, kind: NameKind | None = None) -> NameFault:
    with pytest.raises(UnusableName) as refused:
        read_name(text, kind)
    assert str(refused.value) == refused.value.fault  # and nothing of the text
    return refused.value.fault


def test_the_subject_of_a_certificate_is_that_of_its_text() -> None:
    from_file = read_name(certificate().pem)
    from_text = read_name("CN=erp,O=Kedai Runcit Aminah,C=MY", DN)
    assert from_file == from_text
    assert str(from_file) == "tls_client_auth_subject_dn:CN=erp,O=Kedai Runcit Aminah,C=MY"
    assert from_file.lookup == from_text.lookup


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        ("subject=CN=erp,O=Kedai Runcit Aminah,C=MY", True),
        (" CN=erp,O=Kedai Runcit Aminah,C=MY\n", True),
        ("cn=ERP,o=kedai  runcit aminah,c=my", True),
        (r"2.5.4.3=erp,O=Kedai\20Runcit Aminah,2.5.4.6=MY", True),
        ("CN=\uff45\uff52\uff50,O=Kedai Runcit Aminah,C=MY", True),
        ("C=MY,O=Kedai Runcit Aminah,CN=erp", False),  # another order
        ("CN=erp,O=Kedai Runcit Aminah", False),  # a part less
        ("CN=erp+O=Kedai Runcit Aminah,C=MY", False),  # two attributes in one part
        ("CN=erp,OU=Kedai Runcit Aminah,C=MY", False),  # another attribute
        (r"CN=erp\,O=Kedai Runcit Aminah,C=MY", False),
    ],
)
def test_spellings_of_one_subject_are_the_same(text: str, is_same: bool) -> None:
    assert (read_name(text, DN).lookup == read_name(certificate().pem).lookup) is is_same


def test_the_order_of_attributes_within_one_part_makes_no_difference() -> None:
    assert read_name("CN=a+OU=b,C=MY", DN).lookup == read_name("OU=b+CN=a,C=MY", DN).lookup


def test_a_value_is_never_taken_for_several_parts() -> None:
    values = ["a", "O=b", 'c"', "\\", "[", "]", ", "]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"x{value}y")]) for value in values]
    assert len({canonical_dn(name) for name in names}) == len(values)
    assert [canonical_dn(parse_dn(format_dn(name))) for name in names] == [
        canonical_dn(name) for name in names
    ]


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        (DNS, "ERP.Example.COM", "erp.example.com"),
        (DNS, "erp.example.com.", "erp.example.com"),
        (DNS, "xn--bcher-kva.example", "xn--bcher-kva.example"),
        (URI, "spiffe://example/erp/1", "spiffe://example/erp/1"),
        (URI, LONGEST, LONGEST),
        (EMAIL, "Erp@Example.COM", "Erp@example.com"),
    ],
)
def test_alternative_names(kind: NameKind, text: str, stored: str) -> None:
    assert str(read_name(f" {text}\n", kind)) == f"{kind}:{stored}"


@pytest.mark.parametrize(
    ("kind", "text", "fault"),
    [
        (DNS, "*.example.com", NameFault.SAN_DNS),
        (DNS, "erp", NameFault.SAN_DNS),
        (DNS, "bücher.example", NameFault.SAN_DNS),
        (DNS, "a." * 127 + "example", NameFault.SAN_DNS),
        (URI, "erp.example.com", NameFault.SAN_URI),
        (URI, "spiffe://a b", NameFault.SAN_URI),
        (EMAIL, "erp", NameFault.SAN_EMAIL),
        (DN, "erp", NameFault.SUBJECT_DN),
        (DN, "CN = erp, O = Aminah", NameFault.SUBJECT_DN),  # not as RFC 4514 writes it
        (DN, "XX=erp", NameFault.SUBJECT_DN),
        (DN, "CN=a\x1b[2J", NameFault.SUBJECT_DN),
        (DN, "", NameFault.EMPTY_SUBJECT),
        (DN, "CN=a," * 300 + "C=MY", NameFault.TOO_LONG),
        (URI, f"{LONGEST}x", NameFault.TOO_LONG),
        (None, "CN=erp", NameFault.CERTIFICATE),
        (None, "x" * 30_000, NameFault.CERTIFICATE),
        (None, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
         NameFault.CERTIFICATE),
        (None, "-----BEGIN PRIVATE KEY-----\nAAAA\n", NameFault.PRIVATE),
        (None, f"{certificate().pem}\n-----BEGIN PRIVATE KEY-----", NameFault.PRIVATE),
        (DN, "-----BEGIN EC PRIVATE KEY-----", NameFault.PRIVATE),
    ],
)  # fmt: skip
def test_what_is_no_name_is_named(kind: NameKind | None, text: str, fault: NameFault) -> None:
    assert fault_of(text, kind) is fault


def test_a_certificate_without_a_subject_has_none_to_register() -> None:
    issued = authority().issue("", x509.DNSName("erp.example.com"))
    assert fault_of(issued.pem) is NameFault.EMPTY_SUBJECT
    assert [str(name) for name in names_in(issued.certificate)] == [
        "tls_client_auth_san_dns:erp.example.com"
    ]


def test_all_names_of_a_certificate_are_found() -> None:
    sans: list[Any] = [
        x509.DNSName("ERP.example.com"),
        x509.DNSName("*.example.com"),
        x509.UniformResourceIdentifier("spiffe://example/erp"),
        x509.RFC822Name("erp@Example.com"),
    ]
    issued = authority().issue("CN=erp,C=MY", *sans)
    found = {name.lookup for name in names_in(issued.certificate)}
    assert len(found) == 5
    for kind, text in (
        (DN, "CN=erp,C=MY"),
        (DNS, "erp.example.com"),
        (URI, "spiffe://example/erp"),
        (EMAIL, "erp@example.com"),
    ):
        assert read_name(text, kind).lookup in found
