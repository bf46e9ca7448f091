"""Partitions of login events: one for each month, on PostgreSQL (contract 5).

The key of an event is a UUIDv7, which begins with the time, so each partition is a range of keys.
Events of a month without a partition go into the default one. They are made ahead, and dropped
whole, while logins go on. SQLite has no partitions.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

TABLE = "login_events"
DEFAULT_PARTITION = f"{TABLE}_default"
_NAME = re.compile(rf"{TABLE}_(\d{{4}})_(\d{{2}})")


def first_id(at: datetime) -> UUID:
    """The lowest id that an event of the moment `at` or later can have (RFC 9562 section 5.7)."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def is_partitioned() -> bool:
    """Whether this database has partitions."""
    return connection.vendor == "postgresql"


def has_partition(at: datetime) -> bool:
    """Whether the month of `at` has a partition, or needs none."""
    return not is_partitioned() or partition_name(at.astimezone(UTC)) in partition_ends()


def partitions_before(at: datetime) -> list[str]:
    """The partitions whose events all happened before `at`, oldest first."""
    return [name for name, end in sorted(partition_ends().items()) if end <= at]


def partition_ends() -> dict[str, datetime]:
    """The partition of each month by name, with the moment at which its month ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relid::regclass::text FROM pg_partition_tree(%s::regclass) WHERE isleaf",
            [TABLE],
        )
        names = [name for (name,) in cursor.fetchall()]
    matches = [match for name in names if (match := _NAME.fullmatch(name))]
    return {m[0]: _next_month(datetime(int(m[1]), int(m[2]), 1, tzinfo=UTC)) for m in matches}


def partition_name(month: datetime) -> str:
    """The name of the partition for the month of this moment in UTC."""
    return f"{TABLE}_{month:%Y_%m}"


def _next_month(begin: datetime) -> datetime:
    return (begin + timedelta(days=32)).replace(day=1)


MONTHS_AHEAD = 24
_COPY_BATCH = 20_000
_LOCK_TIMEOUT_MS, _RETRY_SECONDS, _TRIES = 100, 0.5, 60


def make_partitions(at: datetime) -> list[str]:
    """Creates what is missing for the month of `at` and MONTHS_AHEAD more; returns the new names.

    Moves their events out of the default partition. Safe to repeat, and to run beside logins.
    Raises django.db.OperationalError if the table stayed busy.
    """
    if not is_partitioned():
        return []
    existing, made = partition_ends(), []
    begin = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(MONTHS_AHEAD + 1):
        name, end = partition_name(begin), _next_month(begin)
        if name not in existing:
            _make_partition(name, first_id(begin), first_id(end))
            made.append(name)
        begin = end
    return made


def drop_partition(name: str) -> None:
    """Drops a month's partition with all its events. Raises OperationalError if it stayed busy."""
    _run_with_short_locks(f"ALTER TABLE {TABLE} DETACH PARTITION {name}")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")  # detached: nothing else uses it


def delete_from_default(before: datetime, at_most: int) -> int:
    """Deletes the oldest events before the moment from the default partition; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {DEFAULT_PARTITION} WHERE id IN"
            f" (SELECT id FROM {DEFAULT_PARTITION} WHERE id < %s ORDER BY id LIMIT %s)",
            [first_id(before), at_most],
        )
        return int(cursor.rowcount)


def _make_partition(name: str, first: UUID, first_after: UUID) -> None:
    # PostgreSQL makes no partition for events that lie in the default one. So they are copied into
    # a new table first, while they can still be read where they are, and logins go on. Only what
    # came since is copied, and all of them deleted, in the moment in which the table is locked.
    of_month = f"id >= '{first}' AND id < '{first_after}'"
    with connection.cursor() as cursor:
        # The same constraint as the partition's, or PostgreSQL would read every row again.
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {name}"
            f" (LIKE {TABLE} INCLUDING ALL, CONSTRAINT {name}_month CHECK ({of_month}))"
        )
    _copy_from_default(name, first, first_after)
    _run_with_short_locks(
        f"LOCK TABLE ONLY {TABLE} IN ACCESS EXCLUSIVE MODE",
        f"INSERT INTO {name} SELECT * FROM {DEFAULT_PARTITION} AS d WHERE {of_month}"
        f" AND NOT EXISTS (SELECT FROM {name} AS copied WHERE copied.id = d.id)",
        f"DELETE FROM {DEFAULT_PARTITION} WHERE {of_month}",
        f"ALTER TABLE {TABLE} ATTACH PARTITION {name}"
        f" FOR VALUES FROM ('{first}') TO ('{first_after}')",
        f"ALTER TABLE {name} DROP CONSTRAINT {name}_month",
    )


def _copy_from_default(name: str, begin: UUID, first_after: UUID) -> None:
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT id FROM {DEFAULT_PARTITION} WHERE id >= %s AND id < %s ORDER BY id"
                f" OFFSET {_COPY_BATCH} LIMIT 1",
                [begin, first_after],
            )
            (next_begin,) = cursor.fetchone() or (first_after,)
            cursor.execute(
                f"INSERT INTO {name} SELECT * FROM {DEFAULT_PARTITION}"
                " WHERE id >= %s AND id < %s ON CONFLICT DO NOTHING",
                [begin, next_begin],
            )
        if next_begin == first_after:
            return
        begin = next_begin


def _run_with_short_locks(*statements: str) -> None:
    # The statements are fast but lock the whole table. While they wait for a long query to end,
    # logins wait for them: so they give up after a tenth of a second, and are tried again later.
    for attempt in range(_TRIES):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_MS}ms'")
                for statement in statements:
                    cursor.execute(statement)
        except OperationalError as error:
            is_busy = isinstance(error.__cause__, LockNotAvailable)
            if not is_busy or attempt == _TRIES - 1:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
