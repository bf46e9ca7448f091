"""A token that is bound to a certificate opens an API with it alone (RFC 8705 section 3)."""

from typing import Any

import pytest

from einvoicing_tokens import ClientCertificates, InvalidToken, ProvedRequest, TokenVerifier
from tests.certificates.certificate_erp import authority, certificate, nginx, rfc9440
from tests.packages.issuer import Issuer
from tests.servers.certificates import PROXY, STRANGER
from tokens.client_auth.certificate import CertificateHeaders, read_certificate

OWN, OTHER = certificate(), authority().issue()
Headers = dict[str, str]


def bound_token(issuer: Issuer, **also: str) -> str:
    # The thumbprint as the service computes it.
    own = read_certificate(CertificateHeaders(escaped_pem=OWN.escaped, verified="SUCCESS"))
    return issuer.token(cnf={"x5t#S256": own.thumbprint, **also})


@pytest.fixture
def verifier(issuer: Issuer) -> TokenVerifier:
    return issuer.verifier(certificates=ClientCertificates([PROXY, "10.0.0.0/8"]))


def send(verifier: TokenVerifier, token: str, der: bytes | None, scheme: str = "Bearer") -> Any:
    sent = ProvedRequest("POST", "/documents", certificate=der)
    return verifier.authenticate(f"{scheme} {token}", request=sent)


def refused(verifier: TokenVerifier, token: str, der: bytes | None, scheme: str = "Bearer") -> str:
    with pytest.raises(InvalidToken) as error:
        send(verifier, token, der, scheme)
    return str(error.value)


def test_it_opens_with_its_certificate_alone(issuer: Issuer, verifier: TokenVerifier) -> None:
    token = bound_token(issuer)
    assert send(verifier, token, OWN.der).is_bound
    for der in (None, OTHER.der, b"", OWN.der + b"x"):
        assert "did not come with this request" in refused(verifier, token, der)
    with pytest.raises(InvalidToken):
        verifier.verify(token)
    assert "not bound to a key" in refused(verifier, token, OWN.der, "DPoP")


def test_an_api_that_cannot_check_refuses_it(issuer: Issuer) -> None:
    token, verifier = bound_token(issuer), issuer.verifier()
    assert "cannot check" in refused(verifier, token, None)
    with pytest.raises(InvalidToken, match="cannot check"):
        verifier.authenticate(f"Bearer {token}")
    # One that ends TLS itself gives the certificate, and needs no proxy.
    assert send(verifier, token, OWN.der).is_bound


@pytest.mark.parametrize(
    "cnf", [{"x5t#S256": ""}, {"x5t#S256": "x", "jkt": "x"}, {"x5t": "x"}, "x", {}, []]
)
def test_a_binding_that_is_not_known_is_refused(
    issuer: Issuer, verifier: TokenVerifier, cnf: Any
) -> None:
    refused(verifier, issuer.token(cnf=cnf), OWN.der)


def of_request(headers: Headers, peer: str | None = PROXY, doubled: str = "") -> bytes | None:
    def values(name: str) -> list[str | None]:
        return [headers.get(name)] * (2 if name == doubled else 1)

    return ClientCertificates([PROXY, "10.0.0.0/8"]).of_request(peer, values)


@pytest.mark.parametrize("headers", [nginx, rfc9440])
def test_a_trusted_proxy_is_believed_in_both_forms_and_no_other_address(headers: Any) -> None:
    for trusted in (PROXY, "10.1.2.3", f"::ffff:{PROXY}"):
        assert of_request(headers(OWN), trusted) == OWN.der
    for other in (STRANGER, "", None, "unix:", "127.0.0.2"):
        assert of_request(headers(OWN), other) is None


RFC9440 = rfc9440(OWN)["Client-Cert"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        nginx(OWN, "NONE"),
        nginx(OWN, "FAILED:expired"),
        nginx(OWN, "SUCCESS,NONE"),
        {"SSL-Client-Cert": OWN.escaped},
        {"SSL-Client-Verify": "SUCCESS"},
        nginx(OWN) | rfc9440(OWN),
        rfc9440(OWN) | {"Client-Cert": f"{RFC9440},{RFC9440}"},
        rfc9440(OWN) | {"Client-Cert": RFC9440[1:-1]},
        rfc9440(OWN) | {"Client-Cert": ":A:"},
        rfc9440(OWN) | {"Client-Cert": f":{'A' * 40_000}:"},
        nginx(OWN) | {"SSL-Client-Cert": f"{OWN.escaped},{OWN.escaped}"},
        nginx(OWN) | {"SSL-Client-Cert": OWN.pem.replace("\n", "\t")},
        nginx(OWN) | {"SSL-Client-Cert": "é"},
    ],
)
def test_what_is_not_one_verified_certificate_is_none(headers: Headers) -> None:
    assert of_request(headers) is None


@pytest.mark.parametrize("doubled", ["Client-Cert", "SSL-Client-Verify"])
def test_a_header_that_comes_twice_is_none(doubled: str) -> None:
    assert of_request(rfc9440(OWN), doubled=doubled) is None
