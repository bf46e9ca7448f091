"""The application of `bare_view`: no middleware, no database, no signature."""

import os

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, JsonResponse
from django.urls import path

# As long as an answer with a signed token.
_BODY = {"access_token": "x" * 600, "token_type": "Bearer", "expires_in": 3600}


def token(request: HttpRequest) -> JsonResponse:
    """Reads nothing of the request, not even the form."""
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
