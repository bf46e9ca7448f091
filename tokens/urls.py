"""The paths that machines call: the login, metadata, keys, and `GET /api/v1/me`."""

from django.urls import path

from tokens.discovery import jwks, metadata
from tokens.endpoint.view import token_view
from tokens.resource_server.me import MeView

urlpatterns = [
    path("connect/token", token_view, name="token"),
    path(".well-known/oauth-authorization-server", metadata, name="metadata"),
    # The same answer for clients that ask only there; this is not OpenID Connect (contract 2).
    path(".well-known/openid-configuration", metadata),
    path(".well-known/jwks.json", jwks, name="jwks"),
    path("api/v1/me", MeView.as_view(), name="me"),
]
