"""Liveness, readiness and metrics, for load balancers and Prometheus (contract 6).

They need no authentication, so no answer contains a secret, an address or a name.
"""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from tokens.http import View, read_only
from tokens.keys.ring import NoUsableKey
from tokens.keys.signer import current_key_ring
from tokens.login_events.partitions import has_partition
from tokens.metrics import exposition
from tokens.operations.clock import DatabaseClock
from tokens.uptime import uptime

logger = logging.getLogger("identity.health")

Check = Callable[[datetime], None]

_OK, _UNAVAILABLE = "ok", "unavailable"
_NOT_CHECKED = "not checked"
_NO_STORE = {"Cache-Control": "no-store"}


class NotReady(Exception):
    """A check that failed; everybody may read the message."""


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


def readiness(at: datetime) -> Iterator[tuple[str, str]]:
    """Each check and its result; after a failure the later ones are not run."""
    result = _OK
    for name, check in _CHECKS.items():
        result = _result(name, check, at) if result == _OK else _NOT_CHECKED
        yield name, result


def without_answer(checks: dict[str, str], seconds: float) -> dict[str, str]:
    """All checks, where the first that has no result yet took longer than `seconds`."""
    missing = [name for name in _CHECKS if name not in checks]
    late = dict.fromkeys(missing[:1], f"no answer within {seconds:g} seconds")
    return {**checks, **dict.fromkeys(missing, _NOT_CHECKED), **late}


def is_ready(checks: dict[str, str]) -> bool:
    """Whether all of them passed."""
    return set(checks.values()) == {_OK}


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


def _result(name: str, check: Check, at: datetime) -> str:
    try:
        check(at)
    except NotReady as failure:
        return str(failure)
    except Exception:
        # Whatever it is, a login would fail as well. The details are for the log only.
        logger.exception("not ready", extra={"check": name})
        return "failed: see the log"
    return _OK


def _database(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _clock(at: datetime) -> None:
    if connection.vendor != "postgresql":
        return  # the database runs in this process
    clock, before = DatabaseClock(), uptime()
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (database,) = cursor.fetchone()
    clock.observe(before, database, uptime())
    if clock.is_wrong():
        off = clock.difference()
        raise NotReady(f"{off.total_seconds():+.1f} s off the database's: check NTP")


def _migrations(at: datetime) -> None:
    _all_migrated()


@cache  # what is applied stays applied, and the check is slow; an exception is not cached
def _all_migrated() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady("not all applied: run manage.py migrate")


def _login_events(at: datetime) -> None:
    if not has_partition(connection, at):
        raise NotReady("no partition for this month: run manage.py prune_logins")


def _signing_key(at: datetime) -> None:
    try:
        current_key_ring(at).signer(at)
    except NoUsableKey:
        raise NotReady("no key can be decrypted: check KEY_ENCRYPTION_KEYS") from None


# In this order: each needs what the one before it has checked.
_CHECKS: dict[str, Check] = {
    "database": _database,
    "clock": _clock,
    "migrations": _migrations,
    "login_events": _login_events,
    "signing_key": _signing_key,
}


def metrics(*more: Collector) -> View:
    """`GET /metrics` for Prometheus. Do not publish it: it shows how busy the service is.

    `more`: what is not counted where logins are served.
    """

    @read_only
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(
            exposition(more), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=_NO_STORE
        )

    return view
