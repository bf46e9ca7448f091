"""Sets the bits of the indexes whose tokens are no longer good (contract 2).

Triggers note which clients have changed (`taxpayers/facts/status_triggers.py`), and each index has
the moment at which it may end without a change. So only what may have changed is looked at, however
many indexes there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db import OperationalError, connection, transaction

from taxpayers.models import EndedStatusIndex, StatusChange, StatusIndex
from taxpayers.sql import fetch_through_django
from tokens.status_lists.checking import CheckedIndex, check_indexes

_BATCH = 1_000
_CHECKED_AT_ONCE = 500
# One process at a time: so the rows of ended indexes are committed in the order of their numbers.
_ONLY_ONE = "SELECT pg_try_advisory_xact_lock(7266921504)"
# Who changes a client for longer than this makes only the indexes of that client wait.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout TO '50ms'"


def end_indexes(at: datetime) -> None:
    """Ends what is no longer good, a batch of it. `at`: the database's clock.

    Does nothing while another process does it. Raises django.db.DatabaseError.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            if fetch_through_django(_ONLY_ONE, ()) == [(False,)]:
                return
            with connection.cursor() as cursor:
                cursor.execute(_LOCK_TIMEOUT)
        noted = StatusChange.objects.filter(system_user_id__isnull=False).order_by("pk")
        clients = {row.pk: row.system_user_id or 0 for row in noted[:_BATCH]}
        waiting = _end_or_keep(_checked(set(clients.values()), at))
        done = [pk for pk, client in clients.items() if client not in waiting]
        StatusChange.objects.filter(pk__in=done).delete()
        _set_bits(at)


def _checked(clients: Iterable[int], at: datetime) -> dict[int, list[CheckedIndex]]:
    """The indexes of these clients, and those that time may have ended, by their client."""
    indexes = set(
        StatusIndex.objects.filter(system_user_id__in=clients).values_list("pk", flat=True)
    )
    due = StatusIndex.objects.filter(check_at__lt=at).order_by("check_at")
    indexes.update(due.values_list("pk", flat=True)[:_BATCH])
    of_client = defaultdict(list)
    for some in _parts(sorted(indexes), _CHECKED_AT_ONCE):
        for checked in check_indexes(some):
            of_client[checked.system_user_id].append(checked)
    return of_client


def _end_or_keep(of_client: dict[int, list[CheckedIndex]]) -> set[int]:
    """Returns the clients that another session is changing: they are tried again."""
    all_good = {c: found for c, found in of_client.items() if all(one.is_good for one in found)}
    # Nearly all of them are, and one round trip is enough for all that are not locked.
    if _end_or_keep_at_once([one for found in all_good.values() for one in found]):
        of_client = {c: found for c, found in of_client.items() if c not in all_good}
    return {client for client in sorted(of_client) if not _end_or_keep_at_once(of_client[client])}


def _end_or_keep_at_once(checked: list[CheckedIndex]) -> bool:
    """Whether it was done: all of it, or nothing where another session has locked a row."""
    moved = [one for one in checked if one.is_good and one.check_at != one.next_check_at]
    try:
        with transaction.atomic():
            _delete([one.index for one in checked if not one.is_good])
            _set_next_checks(moved)
    except OperationalError:
        return False
    return True


def _set_next_checks(moved: list[CheckedIndex]) -> None:
    # Not if a login has used the index since, for tokens that may do more.
    sql = (
        'UPDATE status_indexes SET check_at = %s WHERE "index" = %s'
        " AND (check_at = %s OR (check_at IS NULL AND %s))"
    )
    stored = connection.ops.adapt_datetimefield_value
    if moved:
        with connection.cursor() as cursor:
            cursor.executemany(
                sql,
                [
                    (stored(one.next_check_at), one.index, stored(one.check_at), not one.check_at)
                    for one in moved
                ],
            )


def _delete(indexes: list[int]) -> None:
    if not indexes:
        return
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT end_status_indexes(%s)", [indexes])
    else:
        StatusIndex.objects.filter(pk__in=indexes).delete()


def _set_bits(at: datetime) -> None:
    noted = StatusChange.objects.filter(ended_index__isnull=False).order_by("pk")
    ended = {row.pk: row.ended_index or 0 for row in noted}
    rows = [EndedStatusIndex(index=index, ended_at=at) for index in dict.fromkeys(ended.values())]
    EndedStatusIndex.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)
    for some in _parts(list(ended), _BATCH):
        StatusChange.objects.filter(pk__in=some).delete()


def _parts(numbers: list[int], size: int) -> Iterator[list[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
