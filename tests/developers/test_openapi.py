"""The OpenAPI description: valid, complete, and with the answers that are really given.

Also to the requests that schemathesis makes from it, at the service as it runs. The same 5,000 each
time; for others: `EXAMPLES=1000 pytest tests/developers/test_openapi.py`.
"""

import contextlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import hypothesis
import jsonschema_rs
import pytest
import schemathesis
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from identity.developers.examples import refused_example
from identity.developers.urls import SANDBOX
from identity.sandbox.registry import make_sandbox
from identity.urls import health_paths
from taxpayers.sandbox import clients
from tests.introspection.api import INTROSPECT, REVOKE, another, new_api, post, revoke, token_of
from tests.introspection.party import Party, credentials as credentials_of
from tests.management_api.test_every_operation import RULES
from tests.self_service.calls import CREDENTIALS, PERMISSIONS, call, explanation_path, second_secret
from tests.servers.service import Service
from tests.support import make
from tests.support.erp import Erp
from tests.support.moments import now
from tokens.refusals.table import REFUSALS
from tokens.urls import urlpatterns as protocol

# Method, path of the description, the answer, and its status.
Row = tuple[str, str, Any, int]
ANY = 0
# A proxy hides them (deploy/nginx.conf); a confirm page leads browsers to the last one.
NOT_PUBLIC = {"/health/ready", "/metrics", "/sandbox/portal"}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    answer = Client().get("/openapi.json")
    assert answer["Content-Type"] == "application/json"
    loaded: dict[str, Any] = json.loads(answer.content)
    return loaded


def test_it_is_valid_openapi_3_1_and_everything_that_it_refers_to_is_there(
    description: dict[str, Any],
) -> None:
    assert description["openapi"] == "3.1.0"
    jsonschema_rs.validator_for(json.loads(RULES.read_text("utf-8"))).validate(description)
    named = set(re.findall(r'"\$ref": "#/components/(\w+)/([\w-]+)"', json.dumps(description)))
    there = {
        (kind, name) for kind in ("schemas", "headers") for name in description["components"][kind]
    }
    assert named == there


def test_it_describes_every_public_address(description: dict[str, Any]) -> None:
    patterns = [str(path.pattern) for path in (*protocol, *health_paths, *SANDBOX)]
    patterns += ["sandbox", "clientcheck.py"]  # of the pages for developers
    served = {"/" + re.sub(r"<str:(\w+)>", r"{\1}", pattern) for pattern in patterns}
    # Of the pages in several languages the plain one; of other pages none.
    translated = {path for path in served if path.startswith(("/en/", "/ms/"))}
    assert set(description["paths"]) == served - translated - NOT_PUBLIC


def test_every_reason_is_an_example_of_the_login_with_its_real_body_and_headers(
    description: dict[str, Any],
) -> None:
    """That these are what a login is answered is tested in test_errors.py."""
    responses = description["paths"]["/connect/token"]["post"]["responses"]
    shown = {
        reason: (int(status), example["value"])
        for status, response in responses.items()
        for content in [response.get("content", {}).get("application/json", {})]
        for reason, example in content.get("examples", {}).items()
    }
    real = {str(reason): refused_example(reason, settings.AUTH_URL) for reason in REFUSALS}
    assert shown == {
        reason: (example.status, json.loads(example.body)) for reason, example in real.items()
    }
    for reason, example in real.items():
        described = {"Content-Type", "Content-Length", "Pragma"}
        described |= set(responses[str(example.status)]["headers"])
        assert set(example.headers) <= described, reason


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list) and value:
        return [shape(value[0])]
    return None


def assert_described(
    description: dict[str, Any], method: str, path: str, answer: HttpResponse
) -> None:
    response = description["paths"][path][method]["responses"][str(answer.status_code)]
    for name, header in response.get("headers", {}).items():
        described = description["components"]["headers"][name] if "$ref" in header else header
        assert name in answer.headers or not described["required"], name
    media_type = answer["Content-Type"].partition(";")[0]
    content = response["content"][media_type]
    if media_type != "application/json":
        return
    schema = {**content["schema"], "components": description["components"]}
    body = json.loads(answer.content)
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(body)
    if "example" in content:
        jsonschema_rs.validate(schema, content["example"])
        assert shape(content["example"]) == shape(body), path


def own(client: Erp) -> Iterator[Row]:
    permission = make.permission(intermediary=client.role)
    explained, token = "/api/v1/logins/{reference}/explanation", token_of(client)
    login = client.login(scope="Unknown")["correlationId"]
    for method, path, of in (
        *(("get", path, path) for path in ("/api/v1/me", CREDENTIALS, PERMISSIONS)),
        *(("post", explanation_path(name), explained) for name in (login, "x")),
        ("delete", CREDENTIALS, CREDENTIALS),  # 409: the last one
    ):
        yield method, of, call(method.upper(), path, token), ANY
        yield method, of, call(method.upper(), path, None), 401
    on_behalf = token_of(client, on_behalf_of=str(permission.taxpayer.identifier))
    yield "get", PERMISSIONS, call("GET", PERMISSIONS, on_behalf), 403
    other = token_of(second_secret(client))
    yield "delete", CREDENTIALS, call("DELETE", CREDENTIALS, other), 200


def protocol_of(client: Erp) -> Iterator[Row]:
    api, token = new_api(), token_of(client)
    yield "post", INTROSPECT, api.introspect("x"), 200
    yield "post", INTROSPECT, api.introspect(token, headers={"Accept": "text/html"}), 406
    yield "post", REVOKE, revoke(client, token, client_secret="x"), 401
    yield "post", REVOKE, revoke(client, token), 200
    signed = api.introspect(token, headers={"Accept": "application/token-introspection+jwt"})
    assert signed["Content-Type"] == "application/token-introspection+jwt"
    yield "post", INTROSPECT, signed, 200


def public(client: Erp) -> Iterator[Row]:
    client.login()  # there is a list only where there is a token
    metadata = [str(path.pattern) for path in protocol if ".well-known" in str(path.pattern)]
    assert len(metadata) == 3
    for path in (
        *(f"/{path}" for path in metadata),
        *("/status", "/health", "/health/live", "/sandbox", "/sandbox.json", "/clientcheck.py"),
    ):
        yield "get", path, get(path), 200
        yield "get", path, Client().post(path), 405
    yield "get", "/status/{number}", get("/status/999999"), 404
    yield "post", "/sandbox/reset", get("/sandbox/reset"), 405


@pytest.mark.django_db
@pytest.mark.parametrize("answers", [own, protocol_of, public])
def test_real_answers_are_as_described(
    description: dict[str, Any], intermediary: Erp, answers: Callable[[Erp], Iterator[Row]]
) -> None:
    for method, path, answer, status in answers(intermediary):
        assert status in (ANY, answer.status_code), path
        if answer.content:
            assert_described(description, method, path, answer)


@pytest.mark.django_db
def test_examples_are_real_answers(description: dict[str, Any], erp: Erp) -> None:
    def shown(path: str, method: str, status: int = 200) -> Any:
        content = description["paths"][path][method]["responses"][str(status)]["content"]
        return content["application/json"]["example"]

    metadata = "/.well-known/oauth-authorization-server"
    assert shown(metadata, "get") == get(metadata).json()
    make_sandbox(now())
    login = description["paths"]["/connect/token"]["post"]["requestBody"]["content"]
    form = login["application/x-www-form-urlencoded"]["example"]
    assert post("/connect/token", form).status_code == 200, "a collection is filled"
    reset = description["paths"]["/sandbox/reset"]["post"]["requestBody"]["content"]
    form = reset["application/x-www-form-urlencoded"]["example"]
    for status, more in ((200, {}), (400, {"client_secret": "x"})):
        answer: Any = Client().post("/sandbox/reset", form | more)
        assert answer.status_code == status
        assert_described(description, "post", "/sandbox/reset", answer)
        assert answer.json() == shown("/sandbox/reset", "post", status)
    api, token = new_api(), token_of(erp)
    real: dict[str, list[HttpResponse]] = {
        INTROSPECT: [
            api.introspect(None),
            post(INTROSPECT, "token=a&token=b"),
            new_api("Other").introspect(token, client_secret=another(api.client_secret)),
        ],
        REVOKE: [
            revoke(erp, None),
            post(REVOKE, "token=a&token=b"),
            revoke(erp, token, client_secret=another(erp.client_secret)),
        ],
    }
    for path, answers in real.items():
        examples = [
            without_reference(example["value"])
            for response in description["paths"][path]["post"]["responses"].values()
            for content in [response.get("content", {}).get("application/json", {})]
            for example in content.get("examples", {}).values()
        ]
        assert examples == [without_reference(json.loads(a.content)) for a in answers], path


def get(path: str) -> Any:
    return Client().get(path)


def without_reference(body: dict[str, str]) -> dict[str, str]:
    return {name: text.partition(" Reference: ")[0] for name, text in body.items()}


NUMBERS = itertools.count()
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.long
@pytest.mark.parametrize("is_known", [False, True], ids=["stranger", "client"])
def test_every_answer_is_described(node: Service, is_known: bool) -> None:
    seen: dict[str, set[int]] = {}
    described: Any = schemathesis.openapi.from_dict(httpx.get(f"{node.url}/openapi.json").json())
    for found in described.get_all_operations():
        operation = found.ok()
        name = f"{operation.method.upper()} {operation.path}"
        seen[name] = answered(node, operation, is_known=is_known)
    if is_known:
        for name in ("POST /connect/token", "POST /connect/introspect", "GET /api/v1/me"):
            assert 200 in seen[name], name
        assert {200, 400} <= seen["GET /api/v1/permissions"]
        assert 200 in seen["POST /sandbox/reset"]
    else:
        assert 400 in seen["POST /connect/token"]  # its example is a client of the sandbox
        assert 401 in seen["GET /api/v1/me"]
        assert 200 not in seen["GET /api/v1/me"]
    assert 200 in seen["GET /.well-known/jwks.json"]


def answered(node: Service, operation: Any, *, is_known: bool) -> set[int]:
    """`is_known`: what schemathesis makes is sent with right credentials, or with a right token."""
    statuses: set[int] = set()
    headers, credentials = {}, {}
    if is_known:
        party = Party(node, f"C88888{next(NUMBERS):05}")
        issued = party.api if operation.path == "/connect/introspect" else party.erp
        credentials = credentials_of(issued)
        if operation.path == "/sandbox/reset":
            public = clients.CREDENTIALS[clients.SandboxName.ONE_LOGIN_A_MINUTE]
            credentials = {"client_id": public.client_id, "client_secret": public.client_secret}
        if operation.path.startswith("/api/v1/"):
            headers = {"Authorization": f"Bearer {party.token()}"}

    for mode in GenerationMode:

        @given(operation.as_strategy(generation_mode=mode))
        @hypothesis.settings(
            max_examples=EXAMPLES or 50,
            deadline=None,
            derandomize=not EXAMPLES,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            if isinstance(case.body, dict):
                case.body = {**case.body, **credentials}
            answer = case.call(base_url=node.url, headers=headers, timeout=10)
            statuses.add(answer.status_code)
            case.validate_response(answer, checks=CHECKS)

        with contextlib.suppress(Unsatisfiable):  # nothing about it can be wrong
            send()
    return statuses
