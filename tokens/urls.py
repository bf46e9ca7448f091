"""The paths that machines call: login, introspection, revocation, metadata, keys, `/api/v1/`."""

from django.urls import path

from tokens.discovery import jwks, metadata
from tokens.http import imported_on_first_use
from tokens.operations.view import token_view, view_of
from tokens.status_lists.view import aggregation, status_list

# What everybody reads, answered from memory: the server asks neither a thread nor the database.
published = [
    path(".well-known/oauth-authorization-server", metadata, name="metadata"),
    # The same answer for clients that ask only there; this is not OpenID Connect (contract 2).
    path(".well-known/openid-configuration", metadata),
    path(".well-known/jwks.json", jwks, name="jwks"),
    path("status", aggregation, name="status_lists"),
    path("status/<str:number>", status_list),
]
# Those on first use: the REST framework imports Django's admin.
urlpatterns = [
    *published,
    path("connect/token", token_view, name="token"),
    path("connect/introspect", view_of("/connect/introspect"), name="introspect"),
    path("connect/revocation", view_of("/connect/revocation"), name="revocation"),
    path("api/v1/me", view_of("/api/v1/me"), name="me"),
    *(
        path(f"api/v1/{address}", imported_on_first_use(f"tokens.self_service.{view}"), name=name)
        for address, view, name in (
            ("credentials/current", "own_credentials.credentials", "credentials"),
            ("permissions", "permissions.permissions", "permissions"),
            ("permission-requests", "permission_requests.requests", "permission_requests"),
            ("permission-requests/<str:id>", "permission_requests.request", "permission_request"),
            ("permission-requests/<str:id>/withdraw", "permission_requests.withdraw", "withdraw"),
            ("connections", "connections.connections", "connections"),
            ("connections/<str:id>", "connections.connection", "connection"),
            ("connections/<str:id>/withdraw", "connections.withdraw", "withdraw_connection"),
            ("representatives", "representatives.representatives", "representatives"),
            ("representatives/<str:id>", "representatives.representative", "representative"),
            ("statement", "statement.statement", "statement"),
            ("logins/<str:reference>/explanation", "statement.explanation", "explanation"),
        )
    ),
]
