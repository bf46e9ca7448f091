"""A token that is bound to a certificate opens an API with it alone (RFC 8705 section 3)."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from flask import Flask
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from einvoicing_tokens import (
    ClientCertificates,
    InvalidToken,
    ProvedRequest,
    TokenVerifier,
)
from einvoicing_tokens import django as for_django
from einvoicing_tokens import fastapi as for_fastapi
from einvoicing_tokens import flask as for_flask
from tests.certificates.addresses import PROXY, STRANGER
from tests.certificates.certificate_erp import authority, certificate, nginx, rfc9440
from tests.packages.issuer import Issuer
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


def test_of_two_bindings_the_certificate_alone_is_not_enough(
    issuer: Issuer, verifier: TokenVerifier
) -> None:
    assert "cannot check" in refused(verifier, bound_token(issuer, jkt="x"), OWN.der)


def test_an_unbound_token_needs_no_certificate(issuer: Issuer, verifier: TokenVerifier) -> None:
    for der in (None, OTHER.der):
        assert not send(verifier, issuer.token(), der).is_bound


# --- What the proxy reports -----------------------------------------------------------------------


def of_request(headers: Headers, peer: str | None = PROXY) -> bytes | None:
    certificates = ClientCertificates([PROXY, "10.0.0.0/8"])
    return certificates.of_request(peer, lambda name: [headers.get(name)])


@pytest.mark.parametrize("headers", [nginx, rfc9440])
@pytest.mark.parametrize("peer", [PROXY, "10.1.2.3", f"::ffff:{PROXY}"])
def test_a_trusted_proxy_is_believed_in_both_forms(headers: Any, peer: str) -> None:
    assert of_request(headers(OWN), peer) == OWN.der


@pytest.mark.parametrize("peer", [STRANGER, "", None, "unix:", "127.0.0.2"])
def test_nobody_else_is(peer: str | None) -> None:
    for headers in (nginx(OWN), rfc9440(OWN)):
        assert of_request(headers, peer) is None


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


def test_a_header_that_comes_twice_is_none() -> None:
    twice = {name: [value, value] for name, value in rfc9440(OWN).items()}
    certificates = ClientCertificates([PROXY])
    for doubled in ({"Client-Cert"}, {"SSL-Client-Verify"}):
        found = certificates.of_request(
            PROXY,
            lambda name, doubled=doubled: (  # type: ignore[misc]
                twice.get(name, []) if name in doubled else twice.get(name, [])[:1]
            ),
        )
        assert found is None


def test_what_is_no_address_is_no_trusted_proxy() -> None:
    with pytest.raises(ValueError, match="example"):
        ClientCertificates(["proxy.example.org"])


# --- The adapters ---------------------------------------------------------------------------------


def flask_status(verifier: TokenVerifier, headers: Headers, peer: str) -> int:
    app = Flask("api")
    tokens = for_flask.TokenRequired(app, verifier)

    @app.post("/documents")
    @tokens()
    def submit() -> dict[str, str]:
        return {}

    address = {"REMOTE_ADDR": peer}
    answer = app.test_client().post("/documents", headers=headers, environ_overrides=address)
    return answer.status_code


def fastapi_status(verifier: TokenVerifier, headers: Headers, peer: str) -> int:
    app = FastAPI()
    for_fastapi.answer_token_errors(app)
    submits = for_fastapi.TokenRequired(verifier)

    @app.post("/documents", dependencies=[Depends(submits)])
    async def submit() -> dict[str, str]:
        return {}

    async def call() -> int:
        transport = httpx.ASGITransport(app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            return (await client.post("/documents", headers=headers)).status_code

    return asyncio.run(call())


def django_status(verifier: TokenVerifier, headers: Headers, peer: str) -> int:
    by = type("Token", (for_django.AccessTokenAuthentication,), {"verifier": verifier})

    class Documents(APIView):
        authentication_classes = (by,)
        renderer_classes = (JSONRenderer,)
        permission_classes = ()

        def post(self, request: Any) -> Response:
            return Response({})

    sent = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    request = APIRequestFactory().post("/documents", REMOTE_ADDR=peer, **sent)
    status: int = Documents.as_view()(request).status_code
    return status


@pytest.mark.parametrize("status", [flask_status, fastapi_status, django_status])
def test_each_adapter_accepts_the_certificate_of_a_trusted_proxy_alone(
    issuer: Issuer, verifier: TokenVerifier, status: Any
) -> None:
    token = {"Authorization": f"Bearer {bound_token(issuer)}"}
    for headers in (nginx(OWN), rfc9440(OWN)):
        assert status(verifier, token | headers, PROXY) == 200
        assert status(verifier, token | headers, STRANGER) == 401
    assert status(verifier, token, PROXY) == 401
    assert status(verifier, token | nginx(OTHER), PROXY) == 401
    assert status(verifier, token | nginx(OWN, "FAILED:x"), PROXY) == 401
    assert status(verifier, {"Authorization": f"Bearer {issuer.token()}"}, STRANGER) == 200
