"""Flask, FastAPI and Django REST framework give the same answers (contract 2, RFC 6750)."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

from einvoicing_tokens import AccessToken, TokenVerifier
from einvoicing_tokens import django as for_django
from einvoicing_tokens import fastapi as for_fastapi
from einvoicing_tokens import flask as for_flask
from tests.packages.issuer import Issuer
from tests.packages.test_dpop import ALGS, API, Client

SCOPE, PERMISSION = "InvoicingAPI", "documents:submit"
INVALID = 'Bearer error="invalid_token"'


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


Call = Callable[..., Answer]


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

    def call(
        path: str, *authorization: str, proofs: tuple[str, ...] = (), host: str = "api"
    ) -> Answer:
        headers = [("Authorization", value) for value in authorization]
        headers += [("DPoP", value) for value in proofs] + [("Host", host)]
        answer = app.test_client().post(path, headers=headers)
        return Answer(answer.status_code, dict(answer.headers), answer.get_json())

    return call


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api")


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

    def call(
        path: str, *authorization: str, proofs: tuple[str, ...] = (), host: str = "api"
    ) -> Answer:
        headers = [("Authorization", value) for value in authorization]
        headers += [("DPoP", value) for value in proofs] + [("Host", host)]

        async def post() -> httpx.Response:
            async with client_of(app) as client:
                return await client.post(path, headers=headers)

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

    def call(
        path: str, *authorization: str, proofs: tuple[str, ...] = (), host: str = "api"
    ) -> Answer:
        # Two headers of one name reach Django as one, joined by a comma (PEP 3333).
        sent = {"HTTP_AUTHORIZATION": ",".join(authorization)} if authorization else {}
        sent |= {"HTTP_DPOP": ",".join(proofs)} if proofs else {}
        sent |= {"HTTP_HOST": host}
        view = views[path if path in views else "/documents"]
        answer = view(APIRequestFactory().post(path, **sent))
        answer.render()
        return Answer(answer.status_code, answer.headers, json.loads(answer.content))

    return call


each_framework = pytest.mark.parametrize("api", [flask_api, fastapi_api, django_api])


@each_framework
def test_a_bound_token_needs_its_proof(
    api: Callable[[TokenVerifier], Call], issuer: Issuer
) -> None:
    client = Client(issuer)
    call = api(issuer.verifier(address=API))
    sent, proof = f"DPoP {client.token}", client.proof()
    accepted = call("/documents", sent, proofs=(proof,))
    assert (accepted.status, accepted.body) == (200, {"taxpayer": "C2584563222:202001234567"})
    challenge = f'DPoP error="invalid_dpop_proof", {ALGS}'
    for proofs in ((), (proof,), (client.proof(jti="1"), client.proof(jti="2"))):
        answer = call("/documents", sent, proofs=proofs)
        assert_refused(answer, 401, "invalid_dpop_proof", challenge)
    of_another_path = call("/reports", sent, proofs=(client.proof(jti="3"),))
    assert_refused(of_another_path, 401, "invalid_dpop_proof", challenge)
    as_bearer = call("/documents", f"Bearer {client.token}", proofs=(client.proof(jti="4"),))
    assert_refused(as_bearer, 401, "invalid_token", f'DPoP error="invalid_token", {ALGS}')


@each_framework
@pytest.mark.parametrize("sent", ["C1:R1", "C1%3AR1", "(%C3%A9)", "%2541"])
@pytest.mark.parametrize("signed", ["C1:R1", "C1%3AR1", "(%C3%A9)", "%2541", "A"])
def test_a_proof_is_for_the_path_however_its_letters_are_escaped(
    api: Callable[[TokenVerifier], Call], issuer: Issuer, sent: str, signed: str
) -> None:
    client = Client(issuer)
    proof = client.proof(htu=f"{API}/documents/{signed}")
    call = api(issuer.verifier(address=API))
    answer = call(f"/documents/{sent}", f"DPoP {client.token}", proofs=(proof,))
    assert answer.status == (200 if unquote(sent) == unquote(signed) else 401)


@each_framework
@pytest.mark.parametrize("host", ["api/documents?", "api/documents#", "api.example.org/x"])
def test_what_is_in_host_is_no_part_of_the_path(
    api: Callable[[TokenVerifier], Call], issuer: Issuer, host: str
) -> None:
    client = Client(issuer)
    call = api(issuer.verifier(address=API))
    for path in ("/documents", "/x/documents/C1"):
        proof = client.proof(htu=f"{API}{path}", jti=path)
        authorization = f"DPoP {client.token}"
        assert call("/documents/C1", authorization, proofs=(proof,), host=host).status in (400, 401)


@pytest.fixture(params=[flask_api, fastapi_api, django_api])
def call(request: pytest.FixtureRequest, issuer: Issuer) -> Call:
    made: Call = request.param(issuer.verifier())
    return made


def assert_refused(answer: Answer, status: int, error: str, challenge: str | None) -> None:
    assert (answer.status, answer.body["error"]) == (status, error)
    assert set(answer.body) == {"error", "error_description"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers.get("WWW-Authenticate") == challenge


def test_a_valid_token_reaches_the_view(call: Call, issuer: Issuer) -> None:
    for token in (issuer.token(), issuer.token(is_intermediary=True)):
        answer = call("/documents", f"Bearer {token}")
        assert (answer.status, answer.body) == (200, {"taxpayer": "C2584563222:202001234567"})


def test_no_token_or_a_bad_one_is_401(call: Call, issuer: Issuer) -> None:
    token = issuer.token()
    for authorization in (
        [],
        ["Basic eDp5"],
        [f"Bearer {token[:-4]}AAAA"],
        [f"Bearer {issuer.token(aud='Other')}"],
        [f"Bearer {token}", f"Bearer {token}"],
        [f"Bearer {token}", "Basic eDp5"],
    ):
        assert_refused(call("/documents", *authorization), 401, "invalid_token", INVALID)


def test_too_little_permission_is_403(call: Call, issuer: Issuer) -> None:
    token = issuer.token(is_intermediary=True, permissions=["documents:view"])
    answer = call("/documents", f"Bearer {token}")
    assert_refused(answer, 403, "insufficient_scope", 'Bearer error="insufficient_scope"')


def test_too_little_scope_is_403_and_named(call: Call, issuer: Issuer) -> None:
    answer = call("/reports", f"Bearer {issuer.token()}")
    challenge = 'Bearer error="insufficient_scope", scope="Reports"'
    assert_refused(answer, 403, "insufficient_scope", challenge)


def test_a_token_that_cannot_be_checked_is_503(call: Call, issuer: Issuer) -> None:
    issuer.is_away = True
    answer = call("/documents", f"Bearer {issuer.token()}")
    assert_refused(answer, 503, "temporarily_unavailable", None)
    assert answer.headers["Retry-After"] == "5"


def test_fastapi_waits_for_the_service_in_a_thread(issuer: Issuer) -> None:
    """While one request waits for the keys, the event loop answers others."""
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


def test_fastapi_shows_in_openapi_which_endpoints_need_a_token(issuer: Issuer) -> None:
    app = FastAPI()
    needed = for_fastapi.TokenRequired(issuer.verifier())

    @app.get("/protected")
    async def protected(token: Annotated[AccessToken, Depends(needed)]) -> str:
        return token.jti

    described = app.openapi()
    (scheme,) = described["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert described["paths"]["/protected"]["get"]["security"]
    assert "parameters" not in described["paths"]["/protected"]["get"]
