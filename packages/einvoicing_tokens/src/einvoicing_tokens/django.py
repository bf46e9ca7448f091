"""For Django REST framework.

    class InvoicingToken(AccessTokenAuthentication):
        verifier = TokenVerifier("https://id.example.org", audience="InvoicingAPI")

    class Documents(APIView):
        authentication_classes = (InvoicingToken,)
        permission_classes = (HasScope("InvoicingAPI"), HasPermission("documents:submit"))

        def post(self, request): taxpayer = token_of(request).taxpayer

`request.auth` is the token, and so is `request.user`: there is no other user.
"""

from typing import ClassVar
from urllib.parse import quote

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.errors import RETRY_SECONDS, TokenError
from einvoicing_tokens.verifier import TokenVerifier


class Refused(APIException):
    """A TokenError as the framework's exception handler answers it: status, challenge and body."""

    def __init__(self, error: TokenError) -> None:
        super().__init__(error.body)
        self.status_code = error.status
        if challenge := error.headers.get("WWW-Authenticate"):
            self.auth_header = challenge
        else:
            self.wait = RETRY_SECONDS


class AccessTokenAuthentication(BaseAuthentication):
    """Every request needs a valid token; subclasses name the `verifier`."""

    verifier: ClassVar[TokenVerifier]

    def authenticate(self, request: Request) -> tuple[AccessToken, AccessToken]:
        """Raises Refused."""
        try:
            sent = ProvedRequest(
                request.method or "",
                quote(request.path),
                [request.META.get("HTTP_DPOP")],
                self.verifier.certificate_of(
                    request.META.get("REMOTE_ADDR"), lambda name: [request.headers.get(name)]
                ),
            )
            token = self.verifier.authenticate(request.META.get("HTTP_AUTHORIZATION"), request=sent)
        except TokenError as error:
            raise Refused(error) from None
        return token, token

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401 by the framework itself."""
        return 'Bearer error="invalid_token"'


def token_of(request: Request) -> AccessToken:
    """The token of a request that has reached the view. Raises TypeError if it has none."""
    if not isinstance(request.auth, AccessToken):
        raise TypeError("The view has no AccessTokenAuthentication.")
    return request.auth


def HasScope(scope: str) -> type[BasePermission]:  # noqa: N802 - it makes a class
    """The token was issued for this scope."""
    return _permission_class(scope=scope)


def HasPermission(permission: str) -> type[BasePermission]:  # noqa: N802 - it makes a class
    """The token may do what this code allows; see `AccessToken.may`."""
    return _permission_class(permission=permission)


def _permission_class(*, scope: str = "", permission: str = "") -> type[BasePermission]:
    class TokenPermission(BasePermission):
        def has_permission(self, request: Request, view: APIView) -> bool:
            if not isinstance(request.auth, AccessToken):
                return False  # not authenticated: that is a 401
            try:
                request.auth.require(scope=scope, permission=permission)
            except TokenError as error:
                raise Refused(error) from None
            return True

    return TokenPermission
