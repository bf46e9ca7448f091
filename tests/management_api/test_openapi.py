"""The OpenAPI description is valid, whole and true: real answers are as it says."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drf_spectacular
import jsonschema_rs
import pytest
import schemathesis
from drf_spectacular.drainage import GENERATOR_STATS
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from identity.api.framework.problems import PROBLEMS
from identity.api.openapi import describe
from identity.api.urls import records, urlpatterns
from taxpayers.duties import MANAGEMENT_SCOPES
from taxpayers.models import GrantedPermission
from tests.management_api.portal import BASE, Portal, assert_ok, assert_problem, send
from tests.support.answers import body_of
from tests.support.erp import new_erp
from tests.support.factories import GrantedPermissionFactory
from tests.webhooks.endpoints import new_endpoint

RULES = Path(drf_spectacular.__file__).parent / "validation" / "openapi_3_1_schema.json"
OPENAPI = f"{BASE}/openapi.json"
EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "1"))  # of each operation, right and wrong
REAL = {"taxpayer": "C2584563222", "permission": 1, "credential": 1}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(send("GET", OPENAPI, None).content)
    return found


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_it_is_valid_openapi_and_was_made_without_a_warning(
    schema: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert schema["openapi"] == "3.1.0"
    rules = json.loads(RULES.read_text(encoding="utf-8"))
    jsonschema_rs.validator_for(rules).validate(schema)
    GENERATOR_STATS.reset()
    describe(records)
    assert not GENERATOR_STATS, capfd.readouterr().err


def test_every_address_is_in_it_with_what_it_is_for(schema: dict[str, Any]) -> None:
    own = {"openapi.json", "problems/<str:kind>", "<path:rest>", ""}
    addresses = {
        str(path.pattern).removeprefix("api/v1/management").lstrip("/") for path in urlpatterns
    }
    assert len(schema["paths"]) == len(addresses - own)
    ids = [operation["operationId"] for *_, operation in operations(schema)]
    assert len(ids) == len(set(ids))
    for path, method, operation in operations(schema):
        assert operation["summary"], path
        scopes = [scope for one in operation["security"] for scope in one["accessToken"]]
        known = schema["components"]["securitySchemes"]["accessToken"]["flows"]
        assert set(scopes) <= known["clientCredentials"]["scopes"].keys() == MANAGEMENT_SCOPES
        assert scopes[-1] == "RegistryAPI"  # the narrowest first
        assert ("RegistryAPI:read" in scopes) == (method == "get")
        sent = {parameter["name"] for parameter in operation.get("parameters", ())}
        is_new = path.count("/") == 4 or "/imports/" in path
        if method == "patch" or (method == "post" and not is_new):
            assert "If-Match" in sent, path
        assert ("Idempotency-Key" in sent) == (method == "post")


def test_every_kind_of_problem_has_its_page_without_a_token() -> None:
    for kind, row in PROBLEMS.items():
        body = assert_ok(send("GET", f"{BASE}/problems/{kind}", None))
        assert body == {
            "type": f"http://localhost:8000{BASE}/problems/{kind}",
            "title": row.title,
            "status": row.status,
            "advice": row.advice,
        }
    assert_problem(send("GET", f"{BASE}/problems/x", None), 404, "not_found")


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_requests_made_from_it_get_the_answers_that_it_describes(
    portal: Portal, schema: dict[str, Any], mode: GenerationMode
) -> None:
    granted: GrantedPermission = GrantedPermissionFactory.create(
        taxpayer__tin="C2584563222", intermediary__taxpayer__tin="C9876543210"
    )
    client = new_erp(taxpayer=granted.taxpayer)
    real = REAL | {
        "client_id": client.client_id,
        "permission": granted.pk,
        "credential": client.system_user.credentials.get().pk,
        "webhook": new_endpoint().pk,
        "reference": "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f",
    }
    statuses: set[int] = set()
    for found in schemathesis.openapi.from_dict(schema).get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if mode == GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue  # nothing of it can be wrong but the path

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            case.path_parameters = {name: real[name] for name in case.path_parameters}
            statuses.add(answer_conforms(portal, case, schema))

        check()
    assert statuses >= ({200, 404} if mode == GenerationMode.POSITIVE else {400, 422})


def answer_conforms(portal: Portal, case: Any, schema: dict[str, Any]) -> int:
    """Sends the case; the answer is one of those that its operation describes. Its status."""
    sent = {"If-Match": "*", "Content-Type": "application/json"}
    kwargs = case.as_transport_kwargs(base_url="http://localhost:8000")
    body = kwargs.get("json", kwargs.get("data"))
    body = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    query = case.query or {}
    path = case.formatted_path
    answer = send(case.method, path, portal.token, body, query=query, **sent)
    assert answer.status_code < 500, (case.method, path, query, body, answer.content)
    operation = schema["paths"][case.path][case.method.lower()]
    described = operation["responses"][str(answer.status_code)]
    (media_type,) = described["content"]
    assert answer["Content-Type"] == media_type
    reference = described["content"][media_type]["schema"]["$ref"]
    check_schema(schema, reference, body_of(answer))
    for header in described["headers"]:
        assert header in answer or header == "Location"
    return answer.status_code


def check_schema(schema: dict[str, Any], reference: str, body: Any) -> None:
    """Raises jsonschema_rs.ValidationError unless the body is as this component says."""
    rules = {"$ref": reference, "components": schema["components"]}
    jsonschema_rs.validator_for(rules, validate_formats=True).validate(body)
