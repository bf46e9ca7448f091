"""Liveness, readiness and metrics, for load balancers and Prometheus (contract 6).

They need no authentication, so no answer contains a secret, an address or a name.
"""

import math
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from identity.readiness import is_ready, readiness
from tokens.http import View, read_only
from tokens.metrics import exposition
from tokens.status_lists.offline_blocks import offline_blocks
from tokens.status_lists.publication import status_lists

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
    return ready_answer(dict(readiness(datetime.now(UTC))))


@read_only
def status(request: HttpRequest) -> HttpResponse:
    """`GET /health`, for everybody: the same in one word, and the version of this service."""
    return public_answer(is_ready(dict(readiness(datetime.now(UTC)))))


def ready_answer(checks: dict[str, str]) -> HttpResponse:
    """For operators: each check and its result."""
    return _answer(is_ready(checks), checks=checks)


def public_answer(passed: bool) -> HttpResponse:
    """For everybody: nothing of what is not ready."""
    version = {"version": settings.VERSION, "commit": settings.COMMIT}
    return _answer(passed, **version, environment=settings.ENVIRONMENT)


def _answer(passed: bool, **more: object) -> HttpResponse:
    content = {"status": _OK if passed else _UNAVAILABLE, **more}
    return JsonResponse(content, status=200 if passed else 503, headers=_NO_STORE)


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


class Build(Collector):
    def collect(self) -> Iterator[Metric]:
        build = {"version": settings.VERSION, "commit": settings.COMMIT}
        yield InfoMetricFamily("identity_build", "The version of this node.", build)


class StatusListAge(Collector):
    """How old the facts are that this process publishes; absent where it publishes none."""

    def collect(self) -> Iterator[Metric]:
        age = status_lists().age_seconds()
        if math.isfinite(age):
            text = "Seconds since the published status lists were read from the database."
            yield GaugeMetricFamily("status_list_age_seconds", text, age)
            text = "Clients that files of block_offline block, until the registry does."
            count = len(offline_blocks().since)
            yield GaugeMetricFamily("offline_blocked_clients", text, count)


class Processes(Collector):
    """CPU time, memory and files of each process of this node, by its `pid`."""

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for pid in _of_this_node():
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
                family = found.setdefault(metric.name, metric)
                samples = [s._replace(labels={"pid": str(pid)}) for s in metric.samples]
                family.samples = samples if family is metric else [*family.samples, *samples]
        yield from found.values()


def _of_this_node() -> list[int]:
    """The master and its processes; only this one where it is not part of a server."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return [os.getpid()]
    master = os.getppid()
    children = Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii")
    return [master, *map(int, children.split())]
