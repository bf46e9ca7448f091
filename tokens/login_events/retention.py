"""How long login events, and what is good for a time, are stored (contract 6, `prune_logins`)."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from tokens.login_events import partitions
from tokens.login_events.counting import count_all
from tokens.models import LoginEvent, RevokedToken, ThrottledCaller, UsedAssertion, UsedProof

_BATCH = 5_000
# By which column, and how long after that moment: RFC 7009, RFC 7523 section 3, RFC 9449 11.1.
_EXPIRING = (
    (RevokedToken, "expires_at", timedelta()),
    (UsedAssertion, "expires_at", timedelta()),
    (UsedProof, "expires_at", timedelta()),
    (ThrottledCaller, "hour", timedelta(days=30)),
)


Pruned = Counter[str]  # of deleted "months", where there are partitions, and of single "logins"


def prune(before: datetime) -> Iterator[Pruned]:
    """Deletes what happened before the moment, and yields what each step has deleted.

    On PostgreSQL whole months, once all of one is older; in the default partition, and on SQLite,
    rows in small batches, each in its own transaction, so that a login never waits long. Raises
    django.db.OperationalError if the table stayed busy.
    """
    delete = _delete_logins
    if partitions.is_partitioned():
        for month in partitions.partitions_before(before):
            partitions.drop_partition(month)
            yield Pruned(months=1)
        delete = partial(partitions.delete_from_default, at_most=_BATCH)
    while deleted := delete(before):
        yield Pruned(logins=deleted)


def prepare(at: datetime) -> None:
    """Makes the partitions of the months to come, and counts logins before they are deleted."""
    partitions.make_partitions(at)
    count_all(at)


def prune_expired(at: datetime) -> int:
    """Deletes what is not needed any more, in small batches; how many rows these were."""
    deleted = 0
    for kind, column, more in _EXPIRING:
        rows: QuerySet[Any] = kind._default_manager.filter(**{f"{column}__lt": at - more})
        deleted += sum(iter(partial(_delete_batch, rows), 0))
    return deleted


def _delete_logins(before: datetime) -> int:
    return _delete_batch(
        LoginEvent.objects.filter(pk__lt=partitions.first_id(before)).order_by("pk")
    )


def _delete_batch(rows: "QuerySet[Any]") -> int:
    with transaction.atomic():
        keys = list(rows.values_list("pk", flat=True)[:_BATCH])
        deleted: int = rows.model._default_manager.filter(pk__in=keys).delete()[0]
    return deleted
