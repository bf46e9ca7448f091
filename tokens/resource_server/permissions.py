"""What a token must be good for, named by the view that is called (contract 2, RFC 6750 3.1).

permission_classes = (HasScope("InvoicingAPI"), HasPermission("documents:submit"))
"""

from collections.abc import Callable

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from tokens.access_tokens.verification import AccessToken


class InsufficientScope(PermissionDenied):
    """403 with its challenge; `scope` is what the token would need, if it is a scope."""

    def __init__(self, description: str, scope: str = "") -> None:
        super().__init__(description)
        needed = f', scope="{scope}"' if scope else ""
        self.auth_header = f'Bearer error="insufficient_scope"{needed}'


def HasScope(scope: str) -> type[BasePermission]:  # noqa: N802 - it reads as what it makes
    """The token was issued for this scope."""

    def check(token: AccessToken) -> None:
        if scope not in token.scopes:
            raise InsufficientScope(f"This needs a token with the scope {scope}.", scope)

    return _demand(check)


def HasPermission(code: str) -> type[BasePermission]:  # noqa: N802
    """The represented taxpayer granted this permission to whoever acts for it.

    A taxpayer that acts for itself needs none: nobody restricts it, so it always passes.
    """

    def check(token: AccessToken) -> None:
        if not token.has_permission(code):
            raise InsufficientScope(
                f"The represented taxpayer has not granted the permission {code}. If it was"
                " granted since this login, log in again."
            )

    return _demand(check)


def _demand(check: Callable[[AccessToken], None]) -> type[BasePermission]:
    class Demand(BasePermission):
        def has_permission(self, request: Request, view: APIView) -> bool:
            if not isinstance(request.auth, AccessToken):
                return False  # nobody was authenticated: that is a 401
            check(request.auth)
            return True

    return Demand
