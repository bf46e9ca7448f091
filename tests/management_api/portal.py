"""The authority's portal as tests see it: calls the management API with its token."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.http import HttpResponse
from django.test import Client

from taxpayers.duties import MANAGEMENT_SCOPES
from taxpayers.models import SystemUser
from tests.introspection.api import token_of
from tests.servers.processes import CHECKOUT
from tests.support.answers import UUID7, body_of, headers_of
from tests.support.erp import Erp, new_erp

BASE = "/api/v1/management"
SCOPES = {
    "InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "InvoicingAPI"},
    **{
        scope: {"description": f"The registry: {scope}", "audience": "RegistryAPI"}
        for scope in sorted(MANAGEMENT_SCOPES)
    },
}
PROBLEM = "application/problem+json"


@dataclass
class Portal:
    erp: Erp
    token: str

    @property
    def system_user(self) -> SystemUser:
        return self.erp.system_user

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        """Sends JSON, or bytes as they are; underscores in names of headers become hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(method, f"{BASE}{path}", self.token, body, **sent)

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("POST", path, {} if body is None else body, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> HttpResponse:
        return self.call("PATCH", path, body, **headers)

    def etag(self, path: str) -> str:
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        return answer["ETag"]


def send(
    method: str, path: str, token: str | None, body: Any = None, query: Any = None, **headers: str
) -> HttpResponse:
    content_type = headers.pop("Content-Type", "application/json")
    authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    more = {} if query is None else {"query_params": query}
    client = Client(raise_request_exception=False)
    return client.generic(  # type: ignore[return-value]
        method,
        path,
        data,
        content_type=content_type,
        headers={**authorization, **{name.replace("_", "-"): headers[name] for name in headers}},
        **more,
    )


def new_portal(scopes: str = "RegistryAPI", asks_for: str | None = None, **fields: Any) -> Portal:
    erp = new_erp(scopes=scopes, **fields)
    return Portal(erp, token_of(erp, scope=asks_for or scopes))


def assert_ok(answer: HttpResponse, status: int = 200) -> dict[str, Any]:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    assert re.fullmatch(UUID7, answer["correlationId"])
    assert not answer.cookies
    return body_of(answer)


def assert_problem(
    answer: HttpResponse, status: int, kind: str, says: str = "", **headers: str
) -> dict[str, Any]:
    """The whole answer (RFC 9457); of the detail at least a part. Returns the body."""
    assert answer.status_code == status, answer.content
    body = body_of(answer)
    allow = {"Allow": answer["Allow"]}
    assert headers_of(answer) == {
        "Content-Type": PROBLEM,
        "Cache-Control": "no-store",
        "correlationId": answer["correlationId"],
        **allow,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    assert re.fullmatch(UUID7, answer["correlationId"])
    assert body["type"] == f"http://localhost:8000{BASE}/problems/{kind}"
    assert body["status"] == status
    assert body["correlationId"] == answer["correlationId"]
    assert body["instance"] == f"urn:uuid:{answer['correlationId']}"
    assert says in body["detail"], body["detail"]
    expected = {"type", "title", "status", "detail", "instance", "correlationId"}
    more = {"error", "error_description"} if status in (401, 403) else set()
    assert set(body) - {"errors"} == expected | more
    assert {error["code"] for error in body.get("errors", ())} <= documented_codes()
    return body


@cache
def documented_codes() -> frozenset[str]:
    text = (CHECKOUT / "docs/management-api.md").read_text(encoding="utf-8")
    table = text.partition("| `code` |")[2].partition("\n\n")[0]
    return frozenset(
        re.findall(r"`(\w+)`", "".join(row.split("|")[0] for row in table.split("\n|")[1:]))
    )


def errors_of(body: dict[str, Any]) -> dict[str, str]:
    return {
        error.get("pointer") or error.get("parameter", ""): error["detail"]
        for error in body["errors"]
    }


def text_of(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
