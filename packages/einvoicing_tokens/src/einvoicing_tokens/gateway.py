"""Verifies tokens for an API in any language: a proxy asks it about each request.

    python -m einvoicing_tokens.gateway --issuer https://id.example.org --audience InvoicingAPI

For nginx (`auth_request`), Traefik (ForwardAuth) and Envoy (`ext_authz` by HTTP). A valid token is
answered with 200 and the headers X-Taxpayer, X-Actor, X-Permissions, X-Scope and X-Client-Id, for
the proxy to send to the API in place of those that a client sent; any other with the API's own
answer: 401, 403 or 503. What the request needs is in the headers X-Required-Scope and
X-Required-Permission, which the proxy sets; more of them demand more.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.errors import TokenError
from einvoicing_tokens.verifier import TokenVerifier

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

_TURN_SECONDS = 0.0005
_THREADS = 16  # a first token waits for keys; the others must not
# Where a proxy says what the client asked for. Envoy asks with the method and path themselves.
PROXIES = {
    "nginx": ("x-original-method", "x-original-uri"),
    "traefik": ("x-forwarded-method", "x-forwarded-uri"),
    "envoy": None,
}
UNLIMITED = "*"  # X-Permissions of a taxpayer that acts for itself


class Answer(NamedTuple):
    """To the proxy."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Gateway:
    """An ASGI application, for tokens that this verifier accepts. `proxy`: one of PROXIES."""

    def __init__(self, verifier: TokenVerifier, *, proxy: str = "nginx") -> None:
        self._verifier, self._asked = verifier, PROXIES[proxy]
        self._threads = ThreadPoolExecutor(_THREADS, "einvoicing_tokens")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one question of the proxy."""
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not spoken here")
        run = asyncio.get_running_loop().run_in_executor
        answer = await run(self._threads, self._answer, scope)
        headers = {**answer.headers, "Content-Length": str(len(answer.body))}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})

    def _answer(self, scope: Message) -> Answer:
        def values(name: str) -> list[str | None]:
            key = name.lower().encode()
            return [value.decode("latin-1") for sent, value in scope["headers"] if sent == key]

        def required(name: str) -> list[str]:
            return [word for value in values(name) if value for word in value.split()]

        peer = (scope.get("client") or (None,))[0]
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        if self._asked:
            method, path = ("".join(map(str, values(name))) for name in self._asked)
        sent = ProvedRequest(
            method,
            path.partition("?")[0],
            values("dpop"),
            self._verifier.certificate_of(peer, values),
        )
        try:
            token = self._verifier.authenticate(*values("authorization"), request=sent)
            for needed in required("x-required-scope"):
                token.require(scope=needed)
            for needed in required("x-required-permission"):
                token.require(permission=needed)
        except TokenError as error:
            return _refusal(error)
        return Answer(200, _told(token))


def _told(token: AccessToken) -> dict[str, str]:
    """All of them each time, also empty: then none of the client's stays in its place."""
    permissions = UNLIMITED if token.permissions is None else " ".join(token.permissions)
    return {
        "X-Taxpayer": str(token.taxpayer),
        "X-Actor": token.actor or "",
        "X-Permissions": permissions,
        "X-Scope": " ".join(token.scopes),
        "X-Client-Id": token.client_id,
    }


def _refusal(error: TokenError) -> Answer:
    body = json.dumps(error.body)
    # nginx drops the body of an answer to `auth_request`, so it is in a header, too.
    headers = {**error.headers, "Content-Type": "application/json", "X-Token-Error": body}
    return Answer(error.status, headers, body.encode())


def main(arguments: list[str]) -> None:
    """Serves until it is stopped."""
    import uvicorn  # noqa: PLC0415 - another ASGI server can serve `Gateway` as well

    parser = argparse.ArgumentParser("python -m einvoicing_tokens.gateway")
    parser.add_argument("--issuer", required=True, help="AUTH_URL of the identity service")
    parser.add_argument("--audience", required=True, help="of your API")
    parser.add_argument("--address", help="at which clients call your API, for bound tokens")
    parser.add_argument("--folder", help="for keys and lists, so that they outlive a restart")
    parser.add_argument("--proxy", choices=PROXIES, default="nginx")
    parser.add_argument("--listen", default="127.0.0.1:9000", metavar="HOST:PORT")
    given = parser.parse_args(arguments)
    # Threads work for a tenth of a millisecond, and the loop must not wait 5 for its next turn.
    sys.setswitchinterval(_TURN_SECONDS)
    host, _, port = given.listen.rpartition(":")
    verifier = TokenVerifier(
        given.issuer, audience=given.audience, address=given.address, folder=given.folder
    )
    gateway = Gateway(verifier, proxy=given.proxy)
    uvicorn.run(gateway, host=host, port=int(port), lifespan="off", access_log=False)


if __name__ == "__main__":
    main(sys.argv[1:])
