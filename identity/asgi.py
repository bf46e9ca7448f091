"""The ASGI application that the server runs: which door a request takes."""

import gc
import json
from typing import Any

from identity.wsgi import application as django_application  # first, because it sets Django up

# isort: split
from django.conf import settings

from identity.errors import NOTHING
from identity.sandbox.upkeep import keep_sandbox_current
from identity.server.limits import BUFFERED_BODY_BYTES, MAX_PATH_LENGTH
from identity.server.overload import LIVE
from identity.server.readiness import PublicStatus, Readiness
from identity.server.wsgi_bridge import WsgiBridge
from tokens.http import error_body
from tokens.operations.asgi import TokenEndpoint
from tokens.operations.paths import OPERATIONS
from tokens.status_lists.publication import status_lists

_READY_PATH, _STATUS_PATH = "/health/ready", "/health"
_READ_METHODS = ("GET", "HEAD")
# Where staff and the portal send registry files, up to 16 MiB, and the form around them.
_UPLOADS = ("/admin/", "/api/v1/management/") if settings.SERVE != "login" else ()
_MAX_UPLOAD_BYTES = 17 * 1024 * 1024
# Requests that may wait for a thread.
_PLACES_PER_THREAD = 16

_LIVE_BODY = json.dumps({"status": "ok"}).encode()
_NOTHING_BODY = json.dumps(error_body("not_found", NOTHING)).encode()


def _max_body_bytes(path: str) -> int:
    """Of a page of Django.

    What everybody can call takes no more than the server reads before it begins with a request: a
    longer body that arrives slowly would take a place of the requests in progress, logins as well.
    """
    return _MAX_UPLOAD_BYTES if path.startswith(_UPLOADS) else BUFFERED_BODY_BYTES


pages = WsgiBridge(
    django_application,
    threads=settings.WEB_THREADS,
    places=settings.WEB_THREADS * _PLACES_PER_THREAD,
    max_body_bytes=_max_body_bytes,
)
login: TokenEndpoint
if settings.OTEL_EXPORTER_OTLP_ENDPOINT and settings.SERVE != "staff":
    # Only here, because its libraries are not installed everywhere, and take time to import.
    from identity.traces.endpoint import TracedEndpoint

    login = TracedEndpoint()
else:
    login = TokenEndpoint()
ready = Readiness()
status = PublicStatus(ready)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Health is answered here, so that it never waits for a thread that the database holds."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    path = scope["path"]
    if len(path) > MAX_PATH_LENGTH:
        await _answer(404, _NOTHING_BODY, send)
    elif path in OPERATIONS and settings.SERVE != "staff":
        await login(scope, receive, send)
    elif path == LIVE and scope["method"] in _READ_METHODS:
        await _answer(200, _LIVE_BODY, send)
    elif path == _READY_PATH and scope["method"] in _READ_METHODS:
        await ready(scope, receive, send)
    elif path == _STATUS_PATH and scope["method"] in _READ_METHODS:
        await status(scope, receive, send)
    else:
        await pages(scope, receive, send)


async def _answer(status: int, body: bytes, send: Any) -> None:
    headers = [
        (b"Content-Type", b"application/json"),
        (b"Cache-Control", b"no-store"),
        (b"Content-Length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Any, send: Any) -> None:
    await login.open()
    if settings.SERVE != "staff":
        status_lists().keep_fresh()
        if settings.ENVIRONMENT == "test":
            keep_sandbox_current()
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await login.close()
    await send({"type": "lifespan.shutdown.complete"})


# What is loaded by now stays: the garbage collector need not look at it again, and the workers that
# are forked from this process go on sharing its memory pages.
gc.collect()
gc.freeze()
# Few objects of a login are part of a cycle: looking for them more rarely costs little memory.
gc.set_threshold(20_000, 50, 50)
