"""The door of the server: the operations of `paths` on an event loop, many at once (ASGI)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from tokens.answers.response import send_answer
from tokens.keys.signer import keep_key_ring_fresh
from tokens.operations.node import Node, this_node
from tokens.operations.paths import OPERATIONS, Operation
from tokens.operations.steps import run
from tokens.request.arrival import receive as read_arrival
from tokens.request.form import MAX_BODY_BYTES
from tokens.request.on_behalf_of import spells_on_behalf_of
from tokens.request.proxies import SECRET_IN_META
from tokens.store.async_store import AsyncStore
from tokens.store.denied_callers import keep_stored
from tokens.store.lanes import CALL_SECONDS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_START_SECONDS = 5.0
# Named as in CGI, as Django does it; a header that comes twice is joined with a comma. Of all other
# headers only those count that were meant as `onbehalfof`: not those that are empty here.
_META = {
    b"host": "",
    b"content-length": "",
    b"connection": "",
    b"accept-encoding": "",
    b"content-type": "CONTENT_TYPE",
    b"authorization": "HTTP_AUTHORIZATION",
    b"onbehalfof": "HTTP_ONBEHALFOF",
    b"dpop": "HTTP_DPOP",
    b"user-agent": "HTTP_USER_AGENT",
    b"accept": "HTTP_ACCEPT",
    b"x-forwarded-for": "HTTP_X_FORWARDED_FOR",
    b"x-forwarded-proto": "HTTP_X_FORWARDED_PROTO",
    b"client-cert": "HTTP_CLIENT_CERT",
    b"ssl-client-cert": "HTTP_SSL_CLIENT_CERT",
    b"ssl-client-verify": "HTTP_SSL_CLIENT_VERIFY",
    b"x-proxy-secret": SECRET_IN_META,
}


class TokenEndpoint:
    """One for each process. Its connections are opened by the first request that needs them."""

    def __init__(
        self,
        node: Node | None = None,
        operations: Mapping[str, Operation] = OPERATIONS,
    ) -> None:
        self._node = node or this_node()
        self._operations = operations
        self._store = AsyncStore(self._node.clock.observe)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        ends_at = asyncio.get_running_loop().time() + CALL_SECONDS
        body = await _read_body(receive)
        if body is None:
            return  # the client has gone
        arrival, raw = read_arrival(_meta(scope), body, self._node.clock.now())
        operation = self._operations[scope["path"]]
        ended = await run(operation.begin(self._node, arrival, raw), self._store, ends_at)
        operation.report(arrival, ended, time.perf_counter() - started)
        await send_answer(ended.answer, send)

    async def open(self) -> None:
        """Reads the signing keys; if the database is out of reach, logins are a 503 for now."""
        keep_stored(self._node.denied_callers)
        has_tried = keep_key_ring_fresh()
        await asyncio.to_thread(has_tried.wait, _START_SECONDS)

    async def close(self) -> None:
        """Waits for what is under way."""
        await self._store.close()


async def _read_body(receive: Receive) -> bytes | None:
    """All of it, or as much as shows that it is too long; None if the client has gone."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part: bytes = message.get("body", b"")
        body = body + part if body else part
        if not message.get("more_body") or len(body) > MAX_BODY_BYTES:
            return body


def _meta(scope: Message) -> dict[str, str]:
    meta = {
        "REQUEST_METHOD": scope["method"],
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "REMOTE_ADDR": scope["client"][0] if scope.get("client") else "",
        "wsgi.url_scheme": scope["scheme"],
    }
    for name, value in scope["headers"]:
        key = _META.get(name)
        if key is None and spells_on_behalf_of(name):
            key = f"HTTP_{name.decode('latin-1').upper()}"
        if key:
            text = value.decode("latin-1")
            meta[key] = f"{meta[key]},{text}" if key in meta else text
    return meta
