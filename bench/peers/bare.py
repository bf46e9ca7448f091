"""A Django view that does nothing: no middleware, no database, no signature. The unit."""

import os
from typing import Any

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, JsonResponse
from django.urls import path

_BODY: dict[str, Any] = {
    "access_token": "x" * 600,  # as long as a signed token
    "token_type": "Bearer",
    "expires_in": 3600,
}


def token(request: HttpRequest) -> JsonResponse:
    """Answers whatever is asked; does not even read it."""
    return JsonResponse(_BODY)


urlpatterns = [path("connect/token", token)]

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ["SECRET_KEY"],
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=[],
)
django.setup()
application = WSGIHandler()
