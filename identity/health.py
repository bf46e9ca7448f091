"""Liveness, readiness and metrics, for load balancers and Prometheus (contract 6).

They need no authentication, so no answer contains a secret, an address or a name.
"""

import json
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from identity.node_metrics import Build, Processes, StatusListAge
from identity.readiness import is_ready, readiness
from tokens.http import View, read_only
from tokens.metrics import exposition

_OK, _UNAVAILABLE = "ok", "unavailable"
_NO_STORE = {"Cache-Control": "no-store"}


@read_only
def live(request: HttpRequest) -> HttpResponse:
    """`GET /health/live`: 200 while this process answers requests."""
    return JsonResponse({"status": _OK}, headers=_NO_STORE)


@read_only
def ready(request: HttpRequest) -> HttpResponse:
    """`GET /health/ready`: 200 if a login can be answered now, else 503 and what fails.

    The server answers it with the same checks and a deadline: see `identity.server.readiness`.
    """
    checks = dict(readiness(datetime.now(UTC)))
    return HttpResponse(
        readiness_body(checks),
        content_type="application/json",
        status=200 if is_ready(checks) else 503,
        headers=_NO_STORE,
    )


@read_only
def status(request: HttpRequest) -> HttpResponse:
    """`GET /health`, for everybody: the same in one word, and the version of this service."""
    passed = is_ready(dict(readiness(datetime.now(UTC))))
    return HttpResponse(
        public_body(passed),
        content_type="application/json",
        status=200 if passed else 503,
        headers=_NO_STORE,
    )


def readiness_body(checks: dict[str, str]) -> bytes:
    """The JSON of the answer."""
    status = _OK if is_ready(checks) else _UNAVAILABLE
    return json.dumps({"status": status, "checks": checks}).encode()


def public_body(passed: bool) -> bytes:
    """The JSON for everybody: nothing of what is not ready."""
    return json.dumps(
        {
            "status": _OK if passed else _UNAVAILABLE,
            "version": settings.VERSION,
            "commit": settings.COMMIT,
            "environment": settings.ENVIRONMENT,
        }
    ).encode()


def metrics(*more: Collector) -> View:
    """`GET /metrics` for Prometheus. Do not publish it: it shows how busy the service is.

    `more`: what is not counted where logins are served.
    """

    @read_only
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(
            exposition((Build(), Processes(), StatusListAge(), *more)),
            content_type=CONTENT_TYPE_PLAIN_0_0_4,
            headers=_NO_STORE,
        )

    return view
