"""What a token must be good for, named by the view that is called (contract 2, RFC 6750 3.1).

permission_classes = (HasScope("InvoicingAPI"), HasPermission("documents:submit"))
"""

from typing import Self

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from tokens.verification import AccessToken


class InsufficientScope(PermissionDenied):
    """403 with its challenge; `scope` is what the token would need, if it is a scope."""

    def __init__(self, description: str, scope: str = "") -> None:
        super().__init__(description)
        needed = f', scope="{scope}"' if scope else ""
        self.auth_header = f'Bearer error="insufficient_scope"{needed}'


class _Demand(BasePermission):
    """A permission with an argument: Django REST framework calls what a view names, to make one."""

    def __call__(self) -> Self:
        return self

    def has_permission(self, request: Request, view: APIView) -> bool:
        """False without a token, which is a 401. Raises InsufficientScope if it is too little."""
        if not isinstance(request.auth, AccessToken):
            return False
        self.check(request.auth)
        return True

    def check(self, token: AccessToken) -> None:
        """Raises InsufficientScope."""
        raise NotImplementedError


class HasScope(_Demand):
    """The token was issued for this scope."""

    def __init__(self, scope: str) -> None:
        self._scope = scope

    def check(self, token: AccessToken) -> None:
        if self._scope not in token.scopes:
            raise InsufficientScope(
                f"This needs a token with the scope {self._scope}.", self._scope
            )


class HasPermission(_Demand):
    """The represented taxpayer granted this permission to whoever acts for it.

    A taxpayer that acts for itself needs none: nobody restricts it, so it always passes.
    """

    def __init__(self, code: str) -> None:
        self._code = code

    def check(self, token: AccessToken) -> None:
        if not token.has_permission(self._code):
            raise InsufficientScope(
                f"The represented taxpayer has not granted the permission {self._code}. If it was"
                " granted since this login, log in again."
            )
