"""Flask, FastAPI and Django REST framework give the same answers (contract 2, RFC 6750)."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import unquote

import httpx
import pytest
from fastapi import Depends, FastAPI
from flask import Flask, g
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView, exception_handler

from einvoicing_tokens import (
    AccessToken,
    ClientCertificates,
    TokenVerifier,
    django as for_django,
    fastapi as for_fastapi,
    flask as for_flask,
)
from tests.certificates.certificate_erp import nginx, rfc9440
from tests.packages.issuer import Issuer
from tests.packages.test_certificates import OTHER, OWN, bound_token
from tests.packages.test_dpop import ALGS, API, Client
from tests.servers.certificates import PROXY, STRANGER

SCOPE, PERMISSION = "InvoicingAPI", "documents:submit"


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Sent:
    """A request with several headers of one name, and the address that it comes from."""

    path: str
    authorization: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    host: str = "api"
    peer: str = "127.0.0.1"
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            *(("Authorization", value) for value in self.authorization),
            *(("DPoP", value) for value in self.proofs),
            *{"Host": self.host, **self.more}.items(),
        ]


Call = Callable[[Sent], Answer]


def flask_api(verifier: TokenVerifier) -> Call:
    app = Flask("api")
    tokens = for_flask.TokenRequired(app, verifier)

    @app.post("/documents", defaults={"of": ""})
    @app.post("/documents/<of>")
    @tokens(scope=SCOPE, permission=PERMISSION)
    def submit(of: str) -> dict[str, str]:
        return {"taxpayer": str(g.access_token.taxpayer)}

    @app.post("/reports")
    @tokens(scope="Reports")
    def reports() -> dict[str, str]:
        return {}

    def call(sent: Sent) -> Answer:
        address = {"REMOTE_ADDR": sent.peer}
        answer = app.test_client().post(sent.path, headers=sent.headers, environ_overrides=address)
        return Answer(answer.status_code, dict(answer.headers), answer.get_json())

    return call


def client_of(app: FastAPI, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(peer, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://api")


def fastapi_api(verifier: TokenVerifier) -> Call:
    app = FastAPI()
    for_fastapi.answer_token_errors(app)
    submits = for_fastapi.TokenRequired(verifier, scope=SCOPE, permission=PERMISSION)
    reads = for_fastapi.TokenRequired(verifier, scope="Reports")

    @app.post("/documents")
    @app.post("/documents/{of}")
    async def submit(token: Annotated[AccessToken, Depends(submits)]) -> dict[str, str]:
        return {"taxpayer": str(token.taxpayer)}

    @app.post("/reports")
    def reports(token: Annotated[AccessToken, Depends(reads)]) -> dict[str, str]:
        return {}

    def call(sent: Sent) -> Answer:
        async def post() -> httpx.Response:
            async with client_of(app, sent.peer) as client:
                return await client.post(sent.path, headers=sent.headers)

        answer = asyncio.run(post())
        return Answer(answer.status_code, answer.headers, answer.json())

    return call


def django_api(verifier: TokenVerifier) -> Call:
    token_verifier = verifier

    class InvoicingToken(for_django.AccessTokenAuthentication):
        verifier = token_verifier

    class Documents(APIView):
        authentication_classes = (InvoicingToken,)
        permission_classes = (for_django.HasScope(SCOPE), for_django.HasPermission(PERMISSION))
        # As in a project that sets neither; this service has its own.
        renderer_classes = (JSONRenderer,)

        def get_exception_handler(self) -> Any:
            return exception_handler

        def post(self, request: Request) -> Response:
            assert request.user is request.auth
            return Response({"taxpayer": str(for_django.token_of(request).taxpayer)})

    class Reports(Documents):
        permission_classes = (for_django.HasScope("Reports"), for_django.HasScope("Reports"))

    views = {"/documents": Documents.as_view(), "/reports": Reports.as_view()}

    def call(sent: Sent) -> Answer:
        headers: dict[str, str] = {}
        for name, value in sent.headers:
            # Two headers of one name reach Django as one, joined by a comma (PEP 3333).
            known = f"HTTP_{name.upper().replace('-', '_')}"
            headers[known] = f"{headers[known]},{value}" if known in headers else value
        view = views[sent.path if sent.path in views else "/documents"]
        answer = view(APIRequestFactory().post(sent.path, REMOTE_ADDR=sent.peer, **headers))
        answer.render()
        return Answer(answer.status_code, answer.headers, json.loads(answer.content))

    return call


Api = Callable[[TokenVerifier], Call]
each_framework = pytest.mark.parametrize("api", [flask_api, fastapi_api, django_api])
INVALID_PROOF = ("invalid_dpop_proof", f'DPoP error="invalid_dpop_proof", {ALGS}')


def assert_refused(answer: Answer, status: int, error: str, challenge: str | None) -> None:
    assert (answer.status, answer.body["error"]) == (status, error)
    assert set(answer.body) == {"error", "error_description"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers.get("WWW-Authenticate") == challenge


@each_framework
def test_a_bound_token_needs_its_proof(api: Api, issuer: Issuer) -> None:
    client, call = Client(issuer), api(issuer.verifier(address=API))
    bound = Sent("/documents", (f"DPoP {client.token}",), (client.proof(),))
    accepted = call(bound)
    assert (accepted.status, accepted.body) == (200, {"taxpayer": "C2584563222:202001234567"})
    another, third = client.proof(jti="1"), client.proof(jti="2")
    for proofs in ((), bound.proofs, (another, third)):
        assert_refused(call(replace(bound, proofs=proofs)), 401, *INVALID_PROOF)
    other_path = replace(bound, path="/reports", proofs=(client.proof(jti="3"),))
    assert_refused(call(other_path), 401, *INVALID_PROOF)
    as_bearer = replace(bound, authorization=(f"Bearer {client.token}",), proofs=(another,))
    assert_refused(call(as_bearer), 401, "invalid_token", f'DPoP error="invalid_token", {ALGS}')


@each_framework
@pytest.mark.parametrize("sent", ["C1:R1", "C1%3AR1", "(%C3%A9)", "%2541"])
@pytest.mark.parametrize("signed", ["C1:R1", "C1%3AR1", "(%C3%A9)", "%2541", "A"])
def test_a_proof_is_for_the_path_however_its_letters_are_escaped(
    api: Api, issuer: Issuer, sent: str, signed: str
) -> None:
    client, call = Client(issuer), api(issuer.verifier(address=API))
    proof = client.proof(htu=f"{API}/documents/{signed}")
    answer = call(Sent(f"/documents/{sent}", (f"DPoP {client.token}",), (proof,)))
    assert answer.status == (200 if unquote(sent) == unquote(signed) else 401)


@each_framework
@pytest.mark.parametrize("host", ["api/documents?", "api/documents#", "api.example.org/x"])
def test_what_is_in_host_is_no_part_of_the_path(api: Api, issuer: Issuer, host: str) -> None:
    client, call = Client(issuer), api(issuer.verifier(address=API))
    for path in ("/documents", "/x/documents/C1"):
        proofs = (client.proof(htu=f"{API}{path}", jti=path),)
        answer = call(Sent("/documents/C1", (f"DPoP {client.token}",), proofs, host))
        assert answer.status in (400, 401)


@each_framework
def test_the_certificate_of_a_trusted_proxy_alone_opens_a_token_bound_to_it(
    api: Api, issuer: Issuer
) -> None:
    call = api(issuer.verifier(certificates=ClientCertificates([PROXY, "10.0.0.0/8"])))
    bound = Sent("/documents", (f"Bearer {bound_token(issuer)}",), peer=PROXY)
    for headers, peer, status in (
        *((of(OWN), PROXY, 200) for of in (nginx, rfc9440)),
        *((of(OWN), STRANGER, 401) for of in (nginx, rfc9440)),
        *((headers, PROXY, 401) for headers in ({}, nginx(OTHER), nginx(OWN, "FAILED:x"))),
    ):
        assert call(replace(bound, more=headers, peer=peer)).status == status
    unbound = replace(bound, authorization=(f"Bearer {issuer.token()}",), peer=STRANGER)
    assert call(unbound).status == 200


@each_framework
def test_each_outcome_of_a_token_has_its_answer(api: Api, issuer: Issuer) -> None:
    call, token = api(issuer.verifier()), issuer.token()
    for valid in (token, issuer.token(is_intermediary=True)):
        answer = call(Sent("/documents", (f"Bearer {valid}",)))
        assert (answer.status, answer.body) == (200, {"taxpayer": "C2584563222:202001234567"})
    for authorization in (
        (),
        ("Basic eDp5",),
        (f"Bearer {token[:-4]}AAAA",),
        (f"Bearer {issuer.token(aud='Other')}",),
        (f"Bearer {token}", f"Bearer {token}"),
        (f"Bearer {token}", "Basic eDp5"),
    ):
        refused = call(Sent("/documents", authorization))
        assert_refused(refused, 401, "invalid_token", 'Bearer error="invalid_token"')
    lacks = 'Bearer error="insufficient_scope"'
    other = issuer.token(is_intermediary=True, permissions=["documents:view"])
    refused = call(Sent("/documents", (f"Bearer {other}",)))
    assert_refused(refused, 403, "insufficient_scope", lacks)
    refused = call(Sent("/reports", (f"Bearer {token}",)))
    assert_refused(refused, 403, "insufficient_scope", f'{lacks}, scope="Reports"')


@each_framework
def test_a_token_that_cannot_be_checked_is_503(api: Api, issuer: Issuer) -> None:
    issuer.is_away = True
    answer = api(issuer.verifier())(Sent("/documents", (f"Bearer {issuer.token()}",)))
    assert_refused(answer, 503, "temporarily_unavailable", None)
    assert answer.headers["Retry-After"] == "5"


def test_fastapi_waits_for_the_service_in_a_thread(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    app = FastAPI()
    for_fastapi.answer_token_errors(app)
    needed = for_fastapi.TokenRequired(verifier)

    @app.get("/protected")
    async def protected(token: Annotated[AccessToken, Depends(needed)]) -> str:
        return token.jti

    @app.get("/open")
    async def opened() -> str:
        return "open"

    headers = {"Authorization": f"Bearer {issuer.token()}"}

    async def both() -> tuple[int, int]:
        issuer.may_answer.clear()
        async with client_of(app) as client:
            waiting = asyncio.create_task(client.get("/protected", headers=headers))
            while not issuer.requests:
                await asyncio.sleep(0.01)
            opened = await client.get("/open")
            assert not waiting.done()
            issuer.may_answer.set()
            return opened.status_code, (await waiting).status_code

    assert asyncio.run(both()) == (200, 200)
