"""`GET /api/v1/me`: which taxpayer a token represents and what it allows (contract 2)."""

from typing import cast

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tokens.access_tokens.claims import taxpayer_claim
from tokens.access_tokens.verification import AccessToken
from tokens.http import rfc3339
from tokens.resource_server.active_token import ActiveTokenAuthentication


class MeView(APIView):
    """The represented taxpayer of the token, who acts, what it may do, and until when.

    Every active token is accepted: call it first when another API refuses a token.
    """

    authentication_classes = (ActiveTokenAuthentication,)
    http_method_names = ("get", "head")

    def get(self, request: Request) -> Response:
        """`actor` and `permissions` are null where the taxpayer acts for itself: no limits."""
        token = cast("AccessToken", request.auth)
        return Response(
            {
                "subject": str(token.subject),
                "taxpayer": taxpayer_claim(token.subject),
                "actor": token.actor,
                "client_id": token.client_id,
                "scopes": token.scopes,
                "permissions": token.permissions if token.actor else None,
                "issued_at": rfc3339(token.issued_at),
                "expires_at": rfc3339(token.expires_at),
                "environment": settings.ENVIRONMENT,
            },
            headers={"Cache-Control": "no-store"},
        )


me = MeView.as_view()
