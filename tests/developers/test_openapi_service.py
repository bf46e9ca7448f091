"""Requests made from the OpenAPI description, by schemathesis, at the service as it runs.

Each answer must have a status, a type, headers and a body that the description has. The same 5,000
requests each time; for others: `EXAMPLES=1000 pytest tests/developers/test_openapi_service.py`.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.introspection.party import Party
from tests.introspection.party import credentials as credentials_of
from tests.servers.service import Service

NUMBERS = itertools.count()
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations(url: str) -> Iterator[Any]:
    loaded: Any = schemathesis.openapi.from_dict(httpx.get(f"{url}/openapi.json").json())
    yield from (result.ok() for result in loaded.get_all_operations())


@pytest.mark.long
@pytest.mark.parametrize("is_known", [False, True], ids=["stranger", "client"])
def test_every_answer_is_described(node: Service, is_known: bool) -> None:
    seen: dict[str, set[int]] = {}
    for operation in operations(node.url):
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
    """The statuses of the answers to what schemathesis makes of one operation.

    `is_known`: it is sent with right credentials, or with a right token.
    """
    statuses: set[int] = set()
    headers, credentials = {}, {}
    if is_known:
        party = Party(node, f"C88888{next(NUMBERS):05}")
        issued = party.api if operation.path == "/connect/introspect" else party.erp
        credentials = credentials_of(issued)
        if operation.path == "/sandbox/reset":
            public = CREDENTIALS[SandboxName.ONE_LOGIN_A_MINUTE]
            credentials = {"client_id": public.client_id, "client_secret": public.client_secret}
        if operation.path.startswith("/api/v1/"):
            headers = {"Authorization": f"Bearer {party.token()}"}

    for mode in GenerationMode:

        @given(operation.as_strategy(generation_mode=mode))
        @settings(
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
