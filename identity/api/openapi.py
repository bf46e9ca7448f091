"""What the management API says of itself: its OpenAPI 3.1 description, a page for each problem."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from django.conf import settings
from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework import problems
from identity.api.framework.view import ManagementView
from identity.developers.examples import REFERENCE
from identity.management_api import SCOPES, base_url
from identity.webhooks.event_types import EVENT_TYPES, TEST
from identity.webhooks.subjects import KINDS

_DESCRIPTION = (
    "Manages the registry of the token service: who may log in, and act for which taxpayer. Every"
    " operation names the scopes of which an access token needs one, and every change of a record"
    " needs its ETag in If-Match."
)
_PATCHES: dict[str, Any] = {
    "TITLE": "Token service: management API",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_PATCH": False,
    "POSTPROCESSING_HOOKS": [],
    "SORT_OPERATIONS": False,
}

_TEXT = {"type": "string"}
_EVENT = {
    "type": "object",
    "description": "What is sent to webhooks. Ignore members that you do not know.",
    "required": ["type", "timestamp", "data"],
    "properties": {
        "type": {"enum": [*EVENT_TYPES, TEST], **_TEXT},
        "timestamp": {"format": "date-time", "description": "When it happened.", **_TEXT},
        "data": {
            "type": "object",
            "description": "Empty in webhook.test. Of what ends soon also credential (an id), days"
            " and ends_at.",
            "properties": {
                "kind": {"enum": sorted(KINDS), **_TEXT},
                "id": _TEXT,
                "path": _TEXT,
                "reference": {"type": ["string", "null"], "format": "uuid"},
            },
        },
    },
}


def describe(patterns: Sequence[URLPattern]) -> dict[str, Any]:
    """The description of these addresses, as JSON."""
    with patched_settings(_PATCHES):
        schema: dict[str, Any] = SchemaGenerator(patterns=list(patterns)).get_schema(public=True)
    components = schema["components"]
    for name, component in components["schemas"].items():
        if name.endswith("Body"):
            component["additionalProperties"] = False  # such fields are refused
    components["securitySchemes"] = {
        "accessToken": {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": f"{settings.AUTH_URL}/connect/token",
                    "scopes": SCOPES,
                }
            },
        }
    }
    components["examples"] = {kind: _example(kind) for kind in problems.PROBLEMS}
    operations = (one for methods in schema["paths"].values() for one in methods.values())
    for status, response in (answer for one in operations for answer in one["responses"].items()):
        if content := response.get("content", {}).get(problems.MEDIA_TYPE):
            kinds = (kind for kind, row in problems.PROBLEMS.items() if str(row.status) == status)
            content["examples"] = {k: {"$ref": f"#/components/examples/{k}"} for k in kinds}
    components["schemas"]["Event"] = _EVENT
    schema["webhooks"] = {name: {"post": _received(name)} for name in (*EVENT_TYPES, TEST)}
    schema["servers"] = [{"url": base_url()}]
    guide = {"url": f"{settings.AUTH_URL}/management-api", "description": "From the first login"}
    schema["externalDocs"] = guide
    return schema


def _example(kind: str) -> dict[str, Any]:
    fault = problems.FieldError(
        "Give a reason: it is missing or blank.", "blank", pointer="#/reason"
    )
    errors = [fault] if problems.PROBLEMS[kind].status == 422 and kind != "key_used_before" else []
    value = problems.problem_body(problems.Problem(kind, errors=errors), str(REFERENCE))
    return {"summary": problems.PROBLEMS[kind].title, "value": value}


def _received(event_type: str) -> dict[str, Any]:
    return {
        "operationId": f"receive_{event_type.replace('.', '_')}",
        "summary": f"An endpoint receives {event_type}, signed as in Standard Webhooks 1.0.0",
        "security": [],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}},
        },
        "responses": {"204": {"description": "Any 2xx: it was received."}},
    }


class _OpenView(ManagementView):
    authentication_classes = ()
    permission_classes = ()


_described = cache(describe)


class Description(_OpenView):
    patterns: tuple[URLPattern, ...] = ()  # given by as_view

    def get(self, request: Request) -> Response:
        return Response(_described(self.patterns))


class ProblemPage(_OpenView):
    """What a kind of problem means, and what to do."""

    def get(self, request: Request, kind: str) -> Response:
        if kind not in problems.PROBLEMS:
            raise problems.Problem("not_found", "There is no such kind of problem.")
        row = problems.PROBLEMS[kind]
        return Response({"type": problems.problem_type(kind), **asdict(row)})


class NoSuchAddress(_OpenView):
    """Every other path below the management API, whatever the method."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise problems.Problem(
            "not_found",
            "There is nothing at this path. All addresses, without a slash at their end, are in"
            f" {settings.STAFF_URL.rstrip('/')}/api/v1/management/openapi.json.",
        )
