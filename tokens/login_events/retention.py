"""How long login events are stored: delete the old ones (contract 6, `prune_logins`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

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

    months: int = 0
    logins: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(self.months + other.months, self.logins + other.logins)


def oldest() -> datetime | None:
    """When the oldest login that is stored happened."""
    return LoginEvent.objects.order_by("pk").values_list("at", flat=True).first()


def prune(before: datetime) -> Iterator[Pruned]:
    """Deletes what happened before the moment.

    Yields what each step has deleted. On PostgreSQL whole months are dropped, without reading them;
    the month of `before` stays until all of it is older. In the default partition, and on SQLite,
    rows are deleted in small batches, each in its own transaction, so that a login never waits
    long. Raises django.db.OperationalError if the table stayed busy.
    """
    delete = _delete_batch
    if is_partitioned(connection):
        for month in partitions_before(connection, before):
            drop_partition(connection, month)
            yield Pruned(months=1)
        delete = partial(delete_from_default, connection, at_most=_BATCH)
    while deleted := delete(before):
        yield Pruned(logins=deleted)


def prepare(at: datetime) -> None:
    """Makes the partitions of the months to come, and counts logins before they are deleted."""
    make_partitions(connection, at)
    count_all(at)


def _delete_batch(before: datetime) -> int:
    with transaction.atomic():
        old = LoginEvent.objects.filter(pk__lt=first_id(before)).order_by("pk")
        deleted, _ = LoginEvent.objects.filter(
            pk__in=list(old.values_list("pk", flat=True)[:_BATCH])
        ).delete()
    return deleted
