"""Which door a request takes: the login, what is answered from memory, an API, or a page (ASGI)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from identity.errors import NOTHING
from identity.health import ready_answer
from identity.management_api import BASE_PATH
from identity.not_taken import answer_of
from identity.sandbox.registry import keep_sandbox_current
from identity.server import overload
from identity.server.limits import MAX_PATH_LENGTH
from identity.server.listener import Listener
from identity.server.readiness import Closing, PublicStatus, Readiness
from identity.server.wsgi_bridge import WsgiApplication, WsgiBridge
from identity.urls import live, views_of
from tokens.answers.response import Answer, send_answer
from tokens.http import error_response
from tokens.operations.paths import OPERATIONS
from tokens.self_service.throttle import too_many_calls
from tokens.status_lists.publication import status_lists
from tokens.urls import published

_READY_PATH, _STATUS_PATH = "/health/ready", "/health"
_FOR_OPERATORS = ("/health", "/metrics")
_API, _MANAGEMENT = "/api/v1/", f"/{BASE_PATH}/"
_READ_METHODS = ("GET", "HEAD")
# Requests that may wait for a thread.
_PLACES_PER_THREAD = 16


class Doors:
    """Each kind of request has separate places, so that none is refused for another.

    `login` answers OPERATIONS, `django` everything that is not answered here.
    """

    def __init__(
        self, login: Any, django: WsgiApplication, long_bodies: overload.LongBodiesOf
    ) -> None:
        def bridge() -> WsgiBridge:
            return WsgiBridge(
                django,
                threads=settings.WEB_THREADS,
                places=settings.WEB_THREADS * _PLACES_PER_THREAD,
                long_bodies=long_bodies,
            )

        # Apart, so that no program that calls an API takes the threads of the pages.
        self._pages, self._apis = bridge(), bridge()
        self._login = login
        self._places = {path: overload.Places(settings.WEB_REQUESTS) for path in OPERATIONS}
        self._ready = Readiness()
        self._status = PublicStatus(self._ready)
        self._is_protocol = settings.SERVE != "staff"
        self._view_at_once = views_of((*(published if self._is_protocol else ()), live))

    def closing(self, doors: Sequence[Listener], say_goodbye: Callable[[], None]) -> Closing:
        """What closes these while this node cannot serve."""
        return Closing(self._ready, doors, say_goodbye)

    async def __call__(self, scope: overload.Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        # By the socket of this machine, which has no address, its operators ask how it is.
        is_open = scope["client"] is not None or scope["path"].startswith(_FOR_OPERATORS)
        if len(scope["path"]) > MAX_PATH_LENGTH or not is_open:
            await _send(error_response(404, "not_found", NOTHING), send)
            return
        try:
            await self._answer(scope, receive, send)
        except overload.NotTaken as fault:
            await send_answer(answer_of(fault, scope), send)

    async def _answer(self, scope: overload.Scope, receive: Any, send: Any) -> None:
        """What everybody reads, and health, are answered here: they never wait for a thread."""
        path = scope["path"]
        if path.startswith(_API) and (refusal := self._throttled(scope)) is not None:
            await _send(refusal, send)
        elif self._is_protocol and path in OPERATIONS:
            with self._places[path]:
                await self._login(scope, receive, send)
        elif path == _READY_PATH and scope["method"] in _READ_METHODS:
            await _send(ready_answer(await self._ready.checks()), send)
        elif path == _STATUS_PATH and scope["method"] in _READ_METHODS:
            await _send(await self._status.answer(), send)
        elif (view := self._view_at_once(path)) is not None:
            request = HttpRequest()
            request.method = scope["method"]
            await _send(cast("HttpResponse", view(request)), send)
        elif path.startswith(_API):
            await self._apis(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    def _throttled(self, scope: overload.Scope) -> HttpResponse | None:
        if scope["path"].startswith(_MANAGEMENT) or not self._is_protocol:
            return None
        now = asyncio.get_running_loop().time()
        return too_many_calls(overload.header_of(scope, b"authorization"), now)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await self._login.open()
        if self._is_protocol:
            status_lists().keep_fresh()
            if settings.ENVIRONMENT == "test":
                keep_sandbox_current()
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self._login.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _send(response: HttpResponse, send: Any) -> None:
    headers = {**response.headers, "Content-Length": str(len(response.content))}
    answer = Answer(response.status_code, response.reason_phrase, headers, response.content)
    await send_answer(answer, send)
