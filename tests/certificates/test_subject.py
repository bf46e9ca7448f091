"""Which subjects of certificates can be registered, and when two are the same. Pure."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from taxpayers.certificates import SubjectFault, UnusableSubject, read_subject, subject_of
from tests.certificates.certificate_erp import SUBJECT, authority, certificate


def fault_of(pem: str) -> SubjectFault:
    with pytest.raises(UnusableSubject) as refused:
        read_subject(pem)
    assert str(refused.value) == refused.value.fault  # and nothing of the text
    return refused.value.fault


def lookup_of(subject: str) -> str:
    return read_subject(authority().issue(subject).pem).lookup


def test_the_subject_is_shown_as_rfc_4514_writes_it() -> None:
    found = read_subject(certificate().pem)
    assert found.text == SUBJECT
    assert found == subject_of(certificate().certificate)
    assert found.lookup.startswith("tls$")  # so no hash of a secret is the same


@pytest.mark.parametrize(
    ("subject", "is_same"),
    [
        ("CN=ERP,O=kedai  runcit aminah,C=MY", True),
        (r"2.5.4.3=erp,O=Kedai\20Runcit Aminah,2.5.4.6=MY", True),
        ("CN=\uff45\uff52\uff50,O=Kedai Runcit Aminah,C=MY", True),
        ("C=MY,O=Kedai Runcit Aminah,CN=erp", False),  # another order
        ("CN=erp,O=Kedai Runcit Aminah", False),  # a part less
        ("CN=erp+O=Kedai Runcit Aminah,C=MY", False),  # two attributes in one part
        ("CN=erp,OU=Kedai Runcit Aminah,C=MY", False),  # another attribute
        (r"CN=erp\,O=Kedai Runcit Aminah,C=MY", False),
    ],
)
def test_spellings_of_one_subject_are_the_same(subject: str, is_same: bool) -> None:
    assert (lookup_of(subject) == read_subject(certificate().pem).lookup) is is_same


def test_the_order_of_attributes_within_one_part_makes_no_difference() -> None:
    assert lookup_of("CN=a+OU=b,C=MY") == lookup_of("OU=b+CN=a,C=MY")


def test_a_value_is_never_taken_for_several_parts() -> None:
    values = ["a", "O=b", 'c"', "\\", "[", "]", ", "]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"x{value}y")]) for value in values]
    assert len({lookup_of(name.rfc4514_string()) for name in names}) == len(values)


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("", SubjectFault.EMPTY),
        ("CN=a\x1b[2J", SubjectFault.NOT_PRINTABLE),
        (",".join(["CN=a"] * 300), SubjectFault.TOO_LONG),
    ],
)
def test_a_subject_that_cannot_be_registered_is_named(subject: str, fault: SubjectFault) -> None:
    assert fault_of(authority().issue(subject, x509.DNSName("erp.example.com")).pem) is fault


@pytest.mark.parametrize(
    ("pem", "fault"),
    [
        (SUBJECT, SubjectFault.CERTIFICATE),
        ("x" * 30_000, SubjectFault.CERTIFICATE),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
         SubjectFault.CERTIFICATE),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n", SubjectFault.PRIVATE),
        (f"{certificate().pem}\n-----BEGIN PRIVATE KEY-----", SubjectFault.PRIVATE),
    ],
    ids=["subject", "long", "broken", "private", "both"],
)  # fmt: skip
def test_what_is_no_certificate_is_named(pem: str, fault: SubjectFault) -> None:
    assert fault_of(pem) is fault
