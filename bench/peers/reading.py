"""The bare view that at least reads the form, as a login must. Not the unit, for comparison."""

from django.http import HttpRequest, JsonResponse
from django.urls import path

from bench.peers import bare
from bench.peers.bare import application


def token(request: HttpRequest) -> JsonResponse:
    """Reads the form and does nothing with it."""
    request.POST.get("client_id")
    return bare.token(request)


bare.urlpatterns[:] = [path("connect/token", token)]

__all__ = ["application"]
