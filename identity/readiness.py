"""What must be right for a login to be answered: each check, in order (contract 6).

No result has a secret, an address or a name: the details are in the log.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from math import isinf

from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from uuid_utils.compat import uuid7

from taxpayers.shut_down import cancelled_after
from tokens.keys.ring import NoUsableKey
from tokens.keys.signer import current_key_ring
from tokens.login_events.partitions import first_id, has_partition
from tokens.models import LoginEvent
from tokens.operations.clock import DatabaseClock
from tokens.operations.recent_writes import WINDOW_SECONDS, fault_of_database, recent_writes
from tokens.status_lists.publication import status_lists
from tokens.uptime import uptime

logger = logging.getLogger("identity.readiness")

Check = Callable[[datetime], None]

_OK, _NOT_CHECKED = "ok", "not checked"
# A change must be known to protected APIs in 10 seconds.
_OLD_SECONDS = 5.0
# Less than the deadline of the server, and as long as a login waits.
_WRITE_SECONDS = 1.0
# So long after an event the node that stored it has counted it, too.
_JUST_NOW_SECONDS = 2


class NotReady(Exception):
    """A check that failed; operators may read the message."""


def readiness(at: datetime) -> Iterator[tuple[str, str]]:
    """Each check and its result; after a failure the later ones are not run.

    The first needs no database: it is told whatever the others say.
    """
    yield "status_lists", _result("status_lists", _status_lists, at)
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


def _status_lists(at: datetime) -> None:
    lists = status_lists()
    if lists.is_kept_fresh and (age := lists.age_seconds()) > _OLD_SECONDS:
        raise NotReady("not read yet" if isinf(age) else f"{age:.0f} s old")


def _database(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _clock(at: datetime) -> None:
    if connection.vendor != "postgresql":
        return  # the database runs in this process
    clock, before = DatabaseClock(), uptime()
    clock.observe(before, _database_time(), uptime())
    if clock.is_wrong():
        seconds = clock.difference().total_seconds()
        side = "ahead of" if seconds > 0 else "behind"
        raise NotReady(f"{abs(seconds):.1f} s {side} the database's: check NTP")


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


@cache  # what is applied stays applied, and the check is slow; an exception is not cached
def _all_migrated() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady("not all applied: run manage.py migrate")


def _login_events(at: datetime) -> None:
    if not has_partition(at):
        raise NotReady("no partition for this month: run manage.py prune_logins")


def _signing_key(at: datetime) -> None:
    try:
        current_key_ring(at).signer(at)
    except NoUsableKey:
        raise NotReady("no key can be decrypted: check KEY_ENCRYPTION_KEYS") from None


def _logins(at: datetime) -> None:
    stored, failed = recent_writes.sums()
    if failed > stored:
        part = f"{failed} of {stored + failed} in {WINDOW_SECONDS} s"
        raise NotReady(f"{part} not stored: {recent_writes.last_fault}")
    if not stored:
        _store_nothing(at)
        recent_writes.stored()  # for a while no other check needs to write


def _store_nothing(at: datetime) -> None:
    """Write a login event and take it back; the commit waits for disk and standby all the same."""
    began = uptime()
    try:
        with cancelled_after(_WRITE_SECONDS), transaction.atomic(), transaction.atomic():
            LoginEvent(id=uuid7(), at=at).save(force_insert=True)
            transaction.set_rollback(True)
    except DatabaseError as error:
        extra = {"check": "logins", "error": str(error)}
        logger.error("not ready", extra=extra)  # noqa: TRY400 - its text says all
        cause = fault_of_database(error) or type(error).__name__
        raise NotReady(f"a login cannot be stored: {cause}") from None
    if uptime() - began > _WRITE_SECONDS:
        raise NotReady(f"no commit within {_WRITE_SECONDS:g} s: disk, or a standby that is lost")


# In this order: each needs what the one before it has checked.
_CHECKS: dict[str, Check] = {
    "database": _database,
    "clock": _clock,
    "migrations": lambda _at: _all_migrated(),
    "login_events": _login_events,
    "signing_key": _signing_key,
    "logins": _logins,
}
# What can be wrong with one node, while others are well.
_OWN_CHECKS = ("clock", "migrations", "signing_key")


def own_fault(at: datetime) -> str | None:
    """Why only this node cannot serve; None: it can, or no node can. Raises DatabaseError."""
    for name in _OWN_CHECKS:
        try:
            _CHECKS[name](at)
        except NotReady as fault:
            return f"{name}: {fault}"
    return None


def is_served_elsewhere(seconds: float) -> bool:
    """Whether tokens were issued in so many seconds by the database's clock, but just now.

    False on SQLite, which has one node. Raises django.db.DatabaseError.
    """
    if connection.vendor != "postgresql":
        return False
    now = _database_time()
    begin, end = (first_id(now - timedelta(seconds=ago)) for ago in (seconds, _JUST_NOW_SECONDS))
    return LoginEvent.objects.filter(id__gte=begin, id__lt=end, reason="").exists()
