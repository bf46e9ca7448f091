"""For FastAPI.

app = FastAPI()
answer_token_errors(app)
verifier = TokenVerifier("https://id.example.org", audience="InvoicingAPI")
submits = TokenRequired(verifier, scope="InvoicingAPI", permission="documents:submit")

@app.post("/documents")
async def submit(token: Annotated[AccessToken, Depends(submits)]): ...
"""

from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.errors import TokenError
from einvoicing_tokens.verifier import TokenVerifier

_IN_OPENAPI = HTTPBearer(bearerFormat="JWT", auto_error=False)


class TokenRequired:
    """A dependency: a valid token with this scope and this permission.

    It is no coroutine, so FastAPI runs it in a thread: the event loop never waits for the identity
    service, in `async def` endpoints either.
    """

    def __init__(self, verifier: TokenVerifier, *, scope: str = "", permission: str = "") -> None:
        self._verifier, self._scope, self._permission = verifier, scope, permission

    def __call__(
        self, request: Request, shown_in_openapi: Annotated[object, Depends(_IN_OPENAPI)]
    ) -> AccessToken:
        """Raises TokenError, which `answer_token_errors` answers."""
        sent = ProvedRequest(
            request.method,
            # Not `request.url`: older versions of Starlette make it of whatever is in Host.
            quote(request.scope["path"]),
            request.headers.getlist("dpop"),
            self._verifier.certificate_of(
                request.client.host if request.client else None, request.headers.getlist
            ),
        )
        token = self._verifier.authenticate(*request.headers.getlist("authorization"), request=sent)
        token.require(scope=self._scope, permission=self._permission)
        return token


def answer_token_errors(app: FastAPI) -> None:
    """From now on the app answers a TokenError with 401, 403 or 503, its headers and its body."""

    @app.exception_handler(TokenError)
    async def answer(request: Request, error: TokenError) -> JSONResponse:
        return JSONResponse(error.body, status_code=error.status, headers=error.headers)
