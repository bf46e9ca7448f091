"""The paths of the protocol."""

from django.urls import path

from tokens.discovery import jwks, metadata
from tokens.endpoint.view import token_view
from tokens.resource_server.me import MeView

urlpatterns = [
    path("connect/token", token_view, name="token"),
    path(".well-known/oauth-authorization-server", metadata, name="metadata"),
    # For clients that look only there: not OpenID Connect, the same answer (contract 2).
    path(".well-known/openid-configuration", metadata),
    path(".well-known/jwks.json", jwks, name="jwks"),
    path("api/v1/me", MeView.as_view(), name="me"),
]
