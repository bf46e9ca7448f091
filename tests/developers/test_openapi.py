"""The OpenAPI description: valid, complete, and with the answers that are really given."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from drf_spectacular.validation import validate_schema

from identity.developers.examples import refused_example
from identity.sandbox.urls import urlpatterns as sandbox
from identity.urls import health_paths
from tests.introspection.api import new_api, revoke, token_of
from tests.self_service.calls import CREDENTIALS, PERMISSIONS, call, explanation_path, second_secret
from tests.support.erp import Erp
from tests.support.factories import GrantedPermissionFactory
from tokens.refusals.table import REFUSALS
from tokens.urls import urlpatterns as protocol

NOT_PUBLIC = {"/health/ready", "/metrics"}  # a proxy hides them (deploy/nginx.conf)


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    answer = Client().get("/openapi.json")
    assert answer["Content-Type"] == "application/json"
    loaded: dict[str, Any] = json.loads(answer.content)
    return loaded


def test_it_is_valid_openapi_3_1(description: dict[str, Any]) -> None:
    assert description["openapi"] == "3.1.0"
    validate_schema(description)
    with pytest.raises(jsonschema.ValidationError):
        validate_schema(description | {"paths": {"no-slash": {}}})


def test_everything_that_it_refers_to_is_there(description: dict[str, Any]) -> None:
    named = set(re.findall(r'"\$ref": "#/components/(\w+)/([\w-]+)"', json.dumps(description)))
    there = {
        (kind, name) for kind in ("schemas", "headers") for name in description["components"][kind]
    }
    assert named == there


def test_it_describes_every_public_address(description: dict[str, Any]) -> None:
    patterns = [str(path.pattern) for path in (*protocol, *health_paths, *sandbox)]
    patterns.append("sandbox")  # a page for developers, of the test environment only
    served = {"/" + re.sub(r"<str:(\w+)>", r"{\1}", pattern) for pattern in patterns}
    # Of the pages in several languages the plain one; of other pages none.
    translated = {path for path in served if path.startswith(("/en/", "/ms/"))}
    files = {"/postman.json", "/bruno.zip"}
    assert set(description["paths"]) == (served - translated - NOT_PUBLIC) | files


def test_the_same_in_yaml(description: dict[str, Any]) -> None:
    answer = Client().get("/openapi.yaml")
    assert answer["Content-Type"] == "application/yaml"
    assert yaml.safe_load(answer.content) == description
    assert b"&id" not in answer.content  # readable: no anchors


def test_tools_of_other_sites_may_read_it_and_caches_may_store_it() -> None:
    answer = Client().get("/openapi.json")
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Cache-Control"] == "public, max-age=3600"
    again = Client().get("/openapi.json", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


# --- Refusals -------------------------------------------------------------------------------------


def test_every_reason_is_an_example_of_the_login_with_its_real_body(
    description: dict[str, Any],
) -> None:
    responses = description["paths"]["/connect/token"]["post"]["responses"]
    shown = {
        reason: (int(status), example["value"])
        for status, response in responses.items()
        for reason, example in response.get("content", {})
        .get("application/json", {})
        .get("examples", {})
        .items()
    }
    # That these are what a login is answered is tested in test_examples.py.
    real = {str(reason): refused_example(reason, settings.AUTH_URL) for reason in REFUSALS}
    assert shown == {
        reason: (example.status, json.loads(example.body)) for reason, example in real.items()
    }


def test_every_header_of_a_refusal_is_described(description: dict[str, Any]) -> None:
    responses = description["paths"]["/connect/token"]["post"]["responses"]
    for reason, row in REFUSALS.items():
        headers = refused_example(reason, settings.AUTH_URL).headers
        unnamed = {"Content-Type", "Content-Length", "Pragma"}
        described = set(responses[str(row.status)]["headers"])
        assert set(headers) - unnamed - described == set(), reason


# --- Real answers ---------------------------------------------------------------------------------


def shape(value: Any) -> Any:
    """The names of all members; of a list those of its first entry."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list) and value:
        return [shape(value[0])]
    return None


def assert_described(
    description: dict[str, Any], method: str, path: str, answer: HttpResponse
) -> None:
    """By its schema and, where there is one, with the members of its example."""
    response = description["paths"][path][method]["responses"][str(answer.status_code)]
    for name in response.get("headers", {}):
        header = header_of(description, response, name)
        assert name in answer.headers or not header["required"], name
    media_type = answer["Content-Type"].partition(";")[0]
    content = response["content"][media_type]
    if media_type != "application/json":
        return
    schema = {**content["schema"], "components": description["components"]}
    body = json.loads(answer.content)
    jsonschema.validate(body, schema, format_checker=jsonschema.FormatChecker())
    if "example" in content:
        jsonschema.validate(content["example"], schema)
        assert shape(content["example"]) == shape(body), path


def header_of(description: dict[str, Any], response: dict[str, Any], name: str) -> dict[str, Any]:
    header: dict[str, Any] = response["headers"][name]
    return description["components"]["headers"][name] if "$ref" in header else header


@pytest.mark.django_db
def test_a_clients_own_addresses_answer_as_described(
    description: dict[str, Any], intermediary: Erp
) -> None:
    permission = GrantedPermissionFactory.create(intermediary=intermediary.role)
    token = token_of(intermediary)
    explained = "/api/v1/logins/{reference}/explanation"
    login = intermediary.login(scope="Unknown")["correlationId"]
    for method, path, of in (
        ("get", "/api/v1/me", "/api/v1/me"),
        ("get", CREDENTIALS, CREDENTIALS),
        ("get", PERMISSIONS, PERMISSIONS),
        ("post", explanation_path(login), explained),
        ("post", explanation_path("x"), explained),
        ("delete", CREDENTIALS, CREDENTIALS),  # 409: the last one
    ):
        assert_described(description, method, of, call(method.upper(), path, token))
        refused = call(method.upper(), path, None)
        assert refused.status_code == 401
        assert_described(description, method, of, refused)
    on_behalf = token_of(intermediary, on_behalf_of=str(permission.taxpayer.identifier))
    refused = call("GET", PERMISSIONS, on_behalf)
    assert refused.status_code == 403
    assert_described(description, "get", PERMISSIONS, refused)
    other = second_secret(intermediary)
    assert_described(
        description, "delete", CREDENTIALS, call("DELETE", CREDENTIALS, token_of(other))
    )


@pytest.mark.django_db
def test_introspection_and_revocation_answer_as_described(
    description: dict[str, Any], erp: Erp
) -> None:
    api, token = new_api(), token_of(erp)
    introspection, revocation = "/connect/introspect", "/connect/revocation"
    active = api.introspect(token)
    assert json.loads(active.content)["active"] is True
    assert set(json.loads(active.content)) > {"sub", "scope", "exp"}
    for path, answer in (
        (introspection, api.introspect("x")),
        (revocation, revoke(erp, token, client_secret="x")),
        (introspection, api.introspect(None)),
        (revocation, revoke(erp, None)),
        (introspection, api.introspect(token, headers={"Accept": "text/html"})),
    ):
        assert_described(description, "post", path, answer)
    assert revoke(erp, token).content == b""
    signed = description["paths"][introspection]["post"]["responses"]["200"]["content"]
    answer = api.introspect(token, headers={"Accept": "application/token-introspection+jwt"})
    assert answer["Content-Type"] in signed


def own_examples(description: dict[str, Any], path: str) -> Iterator[Any]:
    for response in description["paths"][path]["post"]["responses"].values():
        content = response.get("content", {}).get("application/json", {})
        yield from (example["value"] for example in content.get("examples", {}).values())


@pytest.mark.django_db
def test_examples_of_introspection_and_revocation_are_real_answers(
    description: dict[str, Any], erp: Erp
) -> None:
    api, token = new_api(), token_of(erp)
    for path, answers in (
        (
            "/connect/introspect",
            [
                api.introspect(None),
                call_form("/connect/introspect", "token=a&token=b"),
                new_api("Other", "InvoicingAPI").introspect(
                    token, client_secret=new_api("Third").client_secret
                ),
            ],
        ),
        (
            "/connect/revocation",
            [
                revoke(erp, None),
                call_form("/connect/revocation", "token=a&token=b"),
                revoke(erp, token, client_secret=new_api("Fourth").client_secret),
            ],
        ),
    ):
        real = [without_reference(json.loads(answer.content)) for answer in answers]
        shown = [without_reference(example) for example in own_examples(description, path)]
        assert shown == real, path


def call_form(path: str, body: str) -> HttpResponse:
    form = "application/x-www-form-urlencoded"
    return Client().post(path, data=body, content_type=form)  # type: ignore[return-value]


def without_reference(body: dict[str, str]) -> dict[str, str]:
    return {name: text.partition(" Reference: ")[0] for name, text in body.items()}


@pytest.mark.django_db
def test_what_everybody_may_read_is_as_described(description: dict[str, Any], erp: Erp) -> None:
    erp.login()  # there is a list only where there is a token
    for path in (
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/jwks.json",
        "/status",
        "/health",
        "/health/live",
    ):
        answer: Any = Client().get(path)
        assert answer.status_code == 200
        assert_described(description, "get", path, answer)
        refused: Any = Client().post(path)
        assert refused.status_code == 405
        assert_described(description, "get", path, refused)
    missing: Any = Client().get("/status/999999")
    assert_described(description, "get", "/status/{number}", missing)
    metadata = description["paths"]["/.well-known/oauth-authorization-server"]["get"]
    example = metadata["responses"]["200"]["content"]["application/json"]["example"]
    assert example == json.loads(Client().get("/.well-known/oauth-authorization-server").content)


@pytest.mark.django_db
def test_the_sandbox_and_the_files_answer_as_described(description: dict[str, Any]) -> None:
    for path in ("/sandbox", "/sandbox.json", "/postman.json", "/bruno.zip", "/clientcheck.py"):
        answer: Any = Client().get(path)
        assert answer.status_code == 200
        assert_described(description, "get", path, answer)
        refused: Any = Client().post(path)
        assert refused.status_code == 405
        assert_described(description, "get", path, refused)
    operation = description["paths"]["/sandbox/reset"]["post"]
    form = operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["example"]
    for status, sent in ((200, form), (400, form | {"client_secret": "x"})):
        reset: Any = Client().post("/sandbox/reset", sent)
        assert reset.status_code == status
        assert_described(description, "post", "/sandbox/reset", reset)
        shown = operation["responses"][str(status)]["content"]["application/json"]["example"]
        assert json.loads(reset.content) == shown
    wrong: Any = Client().get("/sandbox/reset")
    assert_described(description, "post", "/sandbox/reset", wrong)
