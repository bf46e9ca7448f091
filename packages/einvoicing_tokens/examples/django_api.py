"""A protected API with Django REST framework, in one file.

pip install --find-links http://127.0.0.1:8000/packages/ "einvoicing-tokens[django]"
AUTH_URL=http://127.0.0.1:8000 python django_api.py runserver --noreload 9000
"""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line

# In a project of yours these are in settings.py.
settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    DEBUG=False,
    REST_FRAMEWORK={
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "UNAUTHENTICATED_USER": None,
    },
)

# They read the settings, so they are imported after them.
from django.urls import path  # noqa: E402
from rest_framework.permissions import BasePermission  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from einvoicing_tokens import TokenVerifier  # noqa: E402
from einvoicing_tokens.django import (  # noqa: E402
    AccessTokenAuthentication,
    HasPermission,
    HasScope,
    token_of,
)


class InvoicingToken(AccessTokenAuthentication):
    """The tokens that this API accepts."""

    verifier = TokenVerifier(os.environ["AUTH_URL"], audience="InvoicingAPI")


class Documents(APIView):
    """The documents of the taxpayer that the token represents: no parameter names it."""

    authentication_classes = (InvoicingToken,)

    def get_permissions(self) -> list[BasePermission]:
        code = "documents:view" if self.request.method == "GET" else "documents:submit"
        return [HasScope("InvoicingAPI")(), HasPermission(code)()]

    def get(self, request: Request) -> Response:
        token = token_of(request)
        return Response({"taxpayer": str(token.taxpayer), "actor": token.actor})

    def post(self, request: Request) -> Response:
        return Response({"taxpayer": str(token_of(request).taxpayer)}, status=201)


urlpatterns = [path("documents", Documents.as_view())]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
