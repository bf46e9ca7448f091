"""For Flask.

tokens = TokenRequired(app, TokenVerifier("https://id.example.org", audience="InvoicingAPI"))

@app.post("/documents")
@tokens(scope="InvoicingAPI", permission="documents:submit")
def submit():
    return {"taxpayer": str(g.access_token.taxpayer)}
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar
from urllib.parse import quote

from flask import Flask, Response, current_app, g, jsonify, request

from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.errors import TokenError
from einvoicing_tokens.verifier import TokenVerifier

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class TokenRequired:
    """Makes decorators for views that need a valid token; the view finds it as `g.access_token`."""

    def __init__(self, app: Flask, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        app.register_error_handler(TokenError, _answer)

    def __call__(
        self, *, scope: str = "", permission: str = ""
    ) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
        """A decorator below `@app.route`: the token must have this scope and this permission."""

        def decorator(view: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
            @wraps(view)
            def protected(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
                # Two headers of one name arrive as one, joined by a comma (PEP 3333).
                sent = ProvedRequest(
                    request.method,
                    quote(request.root_path + request.path),
                    [request.headers.get("DPoP")],
                    self._verifier.certificate_of(request.remote_addr, request.headers.getlist),
                )
                token = self._verifier.authenticate(
                    request.headers.get("Authorization"), request=sent
                )
                token.require(scope=scope, permission=permission)
                g.access_token = token
                answer: Answer = current_app.ensure_sync(view)(*args, **kwargs)
                return answer

            return protected

        return decorator


def _answer(error: TokenError) -> Response:
    response = jsonify(error.body)
    response.status_code = error.status
    response.headers.update(error.headers)
    return response
