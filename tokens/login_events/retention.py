"""How long login events are stored: delete the old ones (contract 6, `prune_logins`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from tokens.login_events.hourly_counts import count_all
from tokens.login_events.partition_changes import (
    delete_from_default,
    drop_partition,
    make_partitions,
)
from tokens.login_events.partitions import first_id, is_partitioned, partitions_before
from tokens.models import LoginEvent

_BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted: whole months where there are partitions, and single logins."""

    months: int
    logins: int


def prune(before: datetime, at: datetime, progress: Callable[[int], object] = int) -> Pruned:
    """Deletes what happened before the moment, and makes the partitions of the months to come.

    On PostgreSQL whole months are dropped, without reading them; the month of `before` stays until
    all of it is older. In the default partition, and on SQLite, rows are deleted in small batches,
    each in its own transaction, so that a login never waits long. `progress` is called with the
    number of months, or of rows where there are no months. Raises django.db.OperationalError if the
    table stayed busy.
    """
    make_partitions(connection, at)
    count_all(at)  # before they are deleted
    if not is_partitioned(connection):
        return Pruned(0, sum(iter(lambda: _delete_batch(before, progress), 0)))
    months = partitions_before(connection, before)
    for month in months:
        drop_partition(connection, month)
        progress(1)
    logins = sum(iter(lambda: delete_from_default(connection, before, _BATCH), 0))
    return Pruned(len(months), logins)


def _delete_batch(before: datetime, progress: Callable[[int], object]) -> int:
    with transaction.atomic():
        old = LoginEvent.objects.filter(pk__lt=first_id(before)).order_by("pk")
        deleted, _ = LoginEvent.objects.filter(
            pk__in=list(old.values_list("pk", flat=True)[:_BATCH])
        ).delete()
    progress(deleted)
    return deleted
