"""What a trusted proxy reports of a client's certificate: its forms, and everything else. Pure."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from cryptography import x509
from pytest_django import Settings

from taxpayers.rules import Refused
from tests.certificates.certificate_erp import authority, certificate
from tests.servers.certificates import PROXY, STRANGER
from tokens.client_auth.certificate import (
    CertificateFault,
    CertificateHeaders,
    ClientCertificate,
    read_certificate,
)
from tokens.request.arrival import reported_certificate
from tokens.request.proxies import TrustedProxies

pytestmark = pytest.mark.usefixtures("takes_certificates")
DER = certificate().der
RFC9440 = f":{base64.b64encode(DER).decode()}:"
ESCAPED = certificate().escaped


def read(client_cert: str = "", escaped: str = "", verified: str = "SUCCESS") -> ClientCertificate:
    return read_certificate(CertificateHeaders(client_cert, escaped, verified))


def fault_of(client_cert: str = "", escaped: str = "", verified: str = "SUCCESS") -> str:
    with pytest.raises(Refused) as refused:
        read(client_cert, escaped, verified)
    assert refused.value.reason == "malformed_credentials"
    assert refused.value.parameter == "client_certificate"
    return refused.value.detail


def test_both_forms_are_the_same_certificate() -> None:
    found = read(RFC9440)
    assert found == read(escaped=ESCAPED)
    assert found.thumbprint == certificate().thumbprint
    assert found.valid_until == certificate().certificate.not_valid_after_utc


@pytest.mark.parametrize(
    "verified",
    ["", "NONE", "FAILED:x", "success", "1", "SUCCESS,NONE", "NONE,SUCCESS", "SUCCESS,SUCCESS"],
)
def test_only_a_certificate_that_the_proxy_has_verified_counts(verified: str) -> None:
    for client_cert, escaped in ((RFC9440, ""), ("", ESCAPED)):
        assert fault_of(client_cert, escaped, verified) == CertificateFault.NOT_VERIFIED


@pytest.mark.parametrize(
    "client_cert",
    [
        f"{RFC9440},{RFC9440}",  # two headers
        RFC9440[1:-1],
        RFC9440.replace("M", "-", 1),
        f":{base64.b64encode(DER[:-1]).decode()}:",
        f":{base64.b64encode(DER + b'x').decode()}:",
        *(":AAAA:", "::", ":A:", "é", "\0", "x" * 100),
    ],
)
def test_what_is_no_certificate_is_refused(client_cert: str) -> None:
    assert fault_of(client_cert) == CertificateFault.UNREADABLE


@pytest.mark.parametrize(
    "escaped",
    [
        f"{ESCAPED},{ESCAPED}",
        certificate().pem.replace("\n", "\n\t"),  # nginx's older variable
        quote("-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n"),
        quote(certificate().pem).replace("%0A", "%0D%0A"),
        quote(certificate().pem.replace("\nMIIB", "\nMIIB=", 1), safe=""),  # padding inside
        *("%", "%zz", "é", "x"),
    ],
)
def test_what_is_no_escaped_pem_is_refused(escaped: str) -> None:
    assert fault_of(escaped=escaped) == CertificateFault.UNREADABLE


def test_two_forms_at_once_are_refused() -> None:
    assert fault_of(RFC9440, ESCAPED) == CertificateFault.TWICE


def test_a_long_certificate_is_refused_before_it_is_read() -> None:
    assert fault_of("?" * 24_576) == CertificateFault.UNREADABLE
    assert fault_of("?" * 24_577) == CertificateFault.TOO_LONG
    uris = [x509.UniformResourceIdentifier(f"https://{'x' * 1_500}/{n}") for n in range(6)]
    long = authority().issue("CN=long", *uris)
    assert fault_of(escaped=long.escaped) == CertificateFault.TOO_LONG


def test_what_is_looked_up_is_the_same_after_a_renewal() -> None:
    first, renewed, other = (
        read(escaped=authority().issue(subject).escaped)
        for subject in ("CN=erp", "CN=erp", "CN=other")
    )
    assert first.thumbprint != renewed.thumbprint
    assert first.lookup == renewed.lookup != other.lookup


def test_a_certificate_without_an_end_is_valid() -> None:
    """RFC 5280 section 4.1.2.5: 99991231235959Z. No moment is later."""
    begins = datetime(2026, 3, 1, tzinfo=UTC)
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    found = read(escaped=authority().issue(begins=begins, lives=end - begins).escaped)
    assert found.valid_until == end
    found.check_time(begins + timedelta(days=365))


def test_a_certificate_is_valid_from_its_first_moment_to_its_last() -> None:
    begins = datetime(2026, 3, 1, tzinfo=UTC)
    found = read(escaped=authority().issue(begins=begins, lives=timedelta(days=1)).escaped)

    def fault_at(at: datetime) -> str:
        with pytest.raises(Refused) as refused:
            found.check_time(at)
        return refused.value.detail

    skew, second = timedelta(seconds=10), timedelta(seconds=1)
    ends = begins + timedelta(days=1)
    for at in (begins - skew, begins, ends, ends + skew):
        found.check_time(at)
    assert fault_at(begins - skew - second) == CertificateFault.NOT_YET_VALID
    assert fault_at(ends + skew + second) == CertificateFault.EXPIRED


SENT = {"HTTP_CLIENT_CERT": RFC9440, "HTTP_SSL_CLIENT_VERIFY": "SUCCESS"}


@pytest.mark.parametrize(
    ("peer", "sent", "is_one"),
    [
        *((peer, SENT, True) for peer in (PROXY, f"::ffff:{PROXY}")),
        *((peer, SENT, False) for peer in (STRANGER, "", "unix:")),
        # Without a certificate there is none, unless one was refused.
        *((PROXY, {"HTTP_SSL_CLIENT_VERIFY": verified}, False) for verified in ("", "NONE")),
        (PROXY, {"HTTP_SSL_CLIENT_VERIFY": "FAILED:x"}, True),
    ],
)
def test_only_a_trusted_proxy_is_believed(peer: str, sent: dict[str, str], is_one: bool) -> None:
    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": PROXY, **sent}
    assert (TrustedProxies([PROXY]).certificate(meta) is not None) is is_one


def test_where_no_address_asks_for_certificates_none_is_believed(settings: Settings) -> None:
    """A proxy that was set up before there were certificates passes on what clients send."""
    meta = {"REMOTE_ADDR": PROXY, **SENT}
    assert reported_certificate(meta) is not None
    settings.MTLS_URL = ""
    assert reported_certificate(meta) is None


NEW_SECRET, OLD_SECRET = "n" * 40, "o" * 40


@pytest.mark.parametrize(
    ("sent", "is_believed"),
    [
        *((NEW_SECRET, True), (OLD_SECRET, True), (None, False), ("", False), ("é", False)),
        *((NEW_SECRET[1:], False), (f"{NEW_SECRET}x", False)),
        (f"{NEW_SECRET},{OLD_SECRET}", False),
    ],
)
def test_a_process_beside_the_proxy_cannot_report_a_certificate(
    sent: str | None, is_believed: bool, settings: Settings
) -> None:
    """Its address is that of a trusted proxy; the secret is what only proxy and node have."""
    settings.PROXY_SECRET = [NEW_SECRET, OLD_SECRET]
    secret = {} if sent is None else {"HTTP_X_PROXY_SECRET": sent}
    found = reported_certificate({"REMOTE_ADDR": PROXY, **SENT, **secret})
    assert (found is not None) is is_believed
