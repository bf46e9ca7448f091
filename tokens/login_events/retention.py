"""Login events: find one by its reference, and prune the old ones (contract 5 and 6)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from tokens.login_events.hourly_counts import count_all
from tokens.login_events.partitions import (
    delete_from_default,
    drop_partition,
    first_id,
    is_partitioned,
    make_partitions,
    partitions_before,
)
from tokens.models import LoginEvent

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_BATCH = 5_000


def find_login(reference: str) -> LoginEvent | None:
    """The login whose reference stands anywhere in the text, for people paste whole messages.

    None if no such login is recorded. Raises ValueError if the text holds no reference.
    """
    key = reference_in(reference)
    if key is None:
        raise ValueError(
            "There is no reference in it; one looks like 01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f."
        )
    return LoginEvent.objects.filter(pk=key).first()


def reference_in(text: str) -> UUID | None:
    """The reference that stands anywhere in the text."""
    match = _UUID.search(text)
    return UUID(match[0]) if match else None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went: whole months where there are partitions, and single logins."""

    months: int
    logins: int


def prune(before: datetime, at: datetime, progress: Callable[[int], object] = int) -> Pruned:
    """Deletes what happened before the moment, and makes the partitions of the months to come.

    On PostgreSQL whole months are dropped, without reading them; the month in which `before` lies
    stays whole until it is over. Elsewhere, and where an event lies in no month's partition, rows
    go in small batches, each a transaction of its own, so that a login never waits long. `progress`
    is told how many months, or rows where there are no months. Raises django.db.OperationalError if
    the table stayed busy.
    """
    make_partitions(connection, at)
    count_all(at)  # what goes is counted before
    if not is_partitioned(connection):
        return Pruned(0, sum(iter(lambda: _delete_batch(before, progress), 0)))
    months = partitions_before(connection, before)
    for month in months:
        drop_partition(connection, month)
        progress(1)
    strays = sum(iter(lambda: delete_from_default(connection, before, _BATCH), 0))
    return Pruned(len(months), strays)


def _delete_batch(before: datetime, progress: Callable[[int], object]) -> int:
    with transaction.atomic():
        old = LoginEvent.objects.filter(pk__lt=first_id(before)).order_by("pk")
        deleted, _ = LoginEvent.objects.filter(
            pk__in=list(old.values_list("pk", flat=True)[:_BATCH])
        ).delete()
    progress(deleted)
    return deleted
