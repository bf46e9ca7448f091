"""The paths of the protocol."""

from django.urls import path

from tokens.views import token_view

urlpatterns = [
    path("connect/token", token_view, name="token"),
]
