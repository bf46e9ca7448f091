"""Is it alive, is it ready, how is it doing: for load balancers and Prometheus (contract 6).

None of it needs a login, so none of it tells a secret, an address or a name.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from tokens.http import read_only
from tokens.keys.ring import NoUsableKey
from tokens.keys.signer import current_key_ring
from tokens.login_events.partitions import has_partition
from tokens.metrics import exposition

logger = logging.getLogger("identity.health")

Check = Callable[[datetime], None]

_OK = "ok"
_NO_STORE = {"Cache-Control": "no-store"}


class NotReady(Exception):
    """Why not, in words for everybody."""


@read_only
def live(request: HttpRequest) -> HttpResponse:
    """`GET /health/live`: 200 as long as this process answers at all."""
    return JsonResponse({"status": "ok"}, headers=_NO_STORE)


@read_only
def ready(request: HttpRequest) -> HttpResponse:
    """`GET /health/ready`: 200 if a login can be answered now, else 503 and what is missing."""
    at = datetime.now(UTC)
    checks = dict(_outcomes(at))
    is_ready = set(checks.values()) == {_OK}
    return JsonResponse(
        {"status": _OK if is_ready else "unavailable", "checks": checks},
        status=200 if is_ready else 503,
        headers=_NO_STORE,
    )


def _outcomes(at: datetime) -> Iterator[tuple[str, str]]:
    """Each check and its outcome; after a failure the others are not run."""
    outcome = _OK
    for name, check in _CHECKS.items():
        outcome = _outcome(name, check, at) if outcome == _OK else "not checked"
        yield name, outcome


def _outcome(name: str, check: Check, at: datetime) -> str:
    try:
        check(at)
    except NotReady as reason:
        return str(reason)
    except Exception:
        # Whatever it is, a login would meet it too. The particulars are for the log alone.
        logger.exception("not ready", extra={"check": name})
        return "failed: see the log"
    return _OK


def _database(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _migrations(at: datetime) -> None:
    _all_migrated()


@cache  # what was applied stays applied, and to find out takes a while; a failure is not kept
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
        raise NotReady("none decrypts: look at KEY_ENCRYPTION_KEYS") from None


_CHECKS: dict[str, Check] = {
    "database": _database,
    "migrations": _migrations,
    "login_events": _login_events,
    "signing_key": _signing_key,
}


@read_only
def metrics(request: HttpRequest) -> HttpResponse:
    """`GET /metrics` for Prometheus. Keep it inside: it tells how busy the service is."""
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=_NO_STORE)
