"""What a token must allow, named by the view that is called (contract 2, RFC 6750 section 3.1).

permission_classes = (HasScope("InvoicingAPI"), HasPermission("documents:submit"))
"""

from collections.abc import Callable

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from tokens.access_tokens.verification import AccessToken


class InsufficientScope(PermissionDenied):
    """403 with its challenge; `scope` is the scope that the token lacks, if it lacks one."""

    def __init__(self, description: str, scope: str = "") -> None:
        super().__init__(description)
        missing = f', scope="{scope}"' if scope else ""
        self.auth_header = f'Bearer error="insufficient_scope"{missing}'


def HasScope(scope: str) -> type[BasePermission]:  # noqa: N802 - it makes a class
    """The token was issued for this scope."""

    def check(token: AccessToken) -> None:
        if scope not in token.scopes:
            raise InsufficientScope(f"This needs a token with the scope {scope}.", scope)

    return _permission_class(check)


def HasPermission(code: str) -> type[BasePermission]:  # noqa: N802 - it makes a class
    """The represented taxpayer granted this permission to the intermediary that acts for it.

    A taxpayer that acts for itself needs no permission: it always passes.
    """

    def check(token: AccessToken) -> None:
        if not token.has_permission(code):
            raise InsufficientScope(
                f"The represented taxpayer has not granted the permission {code}. If it was"
                " granted since this login, log in again."
            )

    return _permission_class(check)


def _permission_class(check: Callable[[AccessToken], None]) -> type[BasePermission]:
    class TokenPermission(BasePermission):
        def has_permission(self, request: Request, view: APIView) -> bool:
            if not isinstance(request.auth, AccessToken):
                return False  # no caller is authenticated: that is a 401
            check(request.auth)
            return True

    return TokenPermission
