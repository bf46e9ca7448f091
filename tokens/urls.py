"""The paths that machines call: login, introspection, revocation, metadata, keys, `/api/v1/`."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.urls import path
from django.utils.module_loading import import_string

from tokens.discovery import jwks, metadata
from tokens.endpoint.view import token_view, view_of
from tokens.status_lists.view import aggregation, status_list


def _imported_on_first_use(view: str) -> Callable[..., HttpResponseBase]:
    # The REST framework imports Django's admin: a process that answers logins does without both.
    def call(request: HttpRequest, **parts_of_path: str) -> HttpResponseBase:
        response: HttpResponseBase = import_string(view)(request, **parts_of_path)
        return response

    return call


urlpatterns = [
    path("connect/token", token_view, name="token"),
    path("connect/introspect", view_of("/connect/introspect"), name="introspect"),
    path("connect/revocation", view_of("/connect/revocation"), name="revocation"),
    path(".well-known/oauth-authorization-server", metadata, name="metadata"),
    # The same answer for clients that ask only there; this is not OpenID Connect (contract 2).
    path(".well-known/openid-configuration", metadata),
    path(".well-known/jwks.json", jwks, name="jwks"),
    path("status", aggregation, name="status_lists"),
    path("status/<str:number>", status_list),
    path("api/v1/me", _imported_on_first_use("tokens.resource_server.me.me"), name="me"),
    path(
        "api/v1/credentials/current",
        _imported_on_first_use("tokens.self_service.credentials.credentials"),
        name="credentials",
    ),
    path(
        "api/v1/permissions",
        _imported_on_first_use("tokens.self_service.permissions.permissions"),
        name="permissions",
    ),
    path(
        "api/v1/logins/<str:reference>/explanation",
        _imported_on_first_use("tokens.self_service.explanations.explanation"),
        name="explanation",
    ),
]
