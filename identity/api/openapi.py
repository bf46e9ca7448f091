"""`GET /api/v1/management/openapi.json`: the OpenAPI 3.1 description of the management API."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.view import ManagementView
from identity.management_api import SCOPES, base_url

_DESCRIPTION = (
    "Manages the registry of the token service: who may log in, and act for which taxpayer. Every"
    " operation names the scopes of which an access token needs one, and every change of a record"
    " needs its ETag in If-Match. docs/management-api.md begins with the first change."
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
    schema["servers"] = [{"url": base_url()}]
    return schema


def description(patterns: Sequence[URLPattern]) -> Callable[..., HttpResponseBase]:
    """The view of the description of these addresses; made once in each process."""
    made = cache(lambda: describe(patterns))

    class DescriptionView(ManagementView):
        """The OpenAPI description of the management API. No token is needed."""

        authentication_classes = ()
        permission_classes = ()
        http_method_names = ("get", "head")

        def get(self, request: Request) -> Response:
            return Response(made())

    return DescriptionView.as_view()
