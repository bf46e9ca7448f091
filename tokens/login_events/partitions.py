"""Login events by month: PostgreSQL partitions, made ahead and dropped whole (contract 5).

The key of an event is a UUIDv7, which begins with the moment, so the partitions are ranges of the
key. SQLite has no partitions; there the functions that make them do nothing.
"""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import LockNotAvailable

TABLE = "login_events"
MONTHS_AHEAD = 24
_DEFAULT = f"{TABLE}_default"
_COPIED_AT_ONCE = 20_000
_LOCK_TIMEOUT_MS, _PAUSE_SECONDS, _TRIES = 100, 0.5, 60
_NAME = re.compile(rf"{TABLE}_(\d{{4}})_(\d{{2}})")


def first_id(at: datetime) -> UUID:
    """The lowest id that an event of the moment `at` or later can have (RFC 9562 section 5.7).

    Nothing is older than 1970: a UUIDv7 cannot say so.
    """
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def is_partitioned(connection: BaseDatabaseWrapper) -> bool:
    """Whether this database has partitions."""
    return connection.vendor == "postgresql"


def make_partitions(connection: BaseDatabaseWrapper, at: datetime) -> list[str]:
    """Makes what is missing for the month of `at` and MONTHS_AHEAD more; returns the new names.

    Events of such a month that lie in the default partition move into it. Safe to repeat, also
    after an interruption, and to run beside logins. Raises django.db.OperationalError if the table
    stayed busy.
    """
    if not is_partitioned(connection):
        return []
    existing = set(_partitions(connection))
    made = []
    for begin, end in _months(at, MONTHS_AHEAD + 1):
        name = _name(begin)
        if name not in existing:
            _make_partition(connection, name, first_id(begin), first_id(end))
            made.append(name)
    return made


def _make_partition(
    connection: BaseDatabaseWrapper, name: str, first: UUID, first_after: UUID
) -> None:
    # PostgreSQL makes no partition for events that lie in the default one. So they are copied into
    # a table beside it, while they can still be read where they are, and logins go on; what is left
    # for the moment in which the table is locked is the rest, and to delete them there.
    of_month = f"id >= '{first}' AND id < '{first_after}'"
    with connection.cursor() as cursor:
        # The same constraint as the partition's, or PostgreSQL would read it all again.
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {name}"
            f" (LIKE {TABLE} INCLUDING ALL, CONSTRAINT {name}_month CHECK ({of_month}))"
        )
    _copy_from_default(connection, name, first, first_after)
    _without_blocking_logins(
        connection,
        f"LOCK TABLE ONLY {TABLE} IN ACCESS EXCLUSIVE MODE",
        f"INSERT INTO {name} SELECT * FROM {_DEFAULT} AS d WHERE {of_month}"  # noqa: S608 - names of ours
        f" AND NOT EXISTS (SELECT FROM {name} AS copied WHERE copied.id = d.id)",
        f"DELETE FROM {_DEFAULT} WHERE {of_month}",  # noqa: S608 - names of ours
        f"ALTER TABLE {TABLE} ATTACH PARTITION {name}"
        f" FOR VALUES FROM ('{first}') TO ('{first_after}')",
        f"ALTER TABLE {name} DROP CONSTRAINT {name}_month",
    )


def _copy_from_default(
    connection: BaseDatabaseWrapper, name: str, begin: UUID, first_after: UUID
) -> None:
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT id FROM {_DEFAULT} WHERE id >= %s AND id < %s ORDER BY id"  # noqa: S608 - names of ours
                f" OFFSET {_COPIED_AT_ONCE} LIMIT 1",
                [begin, first_after],
            )
            (next_begin,) = cursor.fetchone() or (first_after,)
            cursor.execute(
                f"INSERT INTO {name} SELECT * FROM {_DEFAULT}"  # noqa: S608 - names of ours
                " WHERE id >= %s AND id < %s ON CONFLICT DO NOTHING",
                [begin, next_begin],
            )
        if next_begin == first_after:
            return
        begin = next_begin


def delete_from_default(connection: BaseDatabaseWrapper, before: datetime, at_most: int) -> int:
    """Deletes the oldest events before the moment that no month has a partition for; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {_DEFAULT} WHERE id IN"  # noqa: S608 - names of ours
            f" (SELECT id FROM {_DEFAULT} WHERE id < %s ORDER BY id LIMIT %s)",
            [first_id(before), at_most],
        )
        return int(cursor.rowcount)


def has_partition(connection: BaseDatabaseWrapper, at: datetime) -> bool:
    """Whether an event of this moment has a place to go."""
    return not is_partitioned(connection) or _name(at.astimezone(UTC)) in _partitions(connection)


def drop_partition(connection: BaseDatabaseWrapper, name: str) -> None:
    """Drops one of `partitions_before` with all its events, without reading them.

    Raises django.db.OperationalError if the table stayed busy.
    """
    _without_blocking_logins(connection, f"ALTER TABLE {TABLE} DETACH PARTITION {name}")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")  # nobody else's by now


def _without_blocking_logins(connection: BaseDatabaseWrapper, *statements: str) -> None:
    # They are quick, but need the table for themselves. While they wait behind a long query, logins
    # wait behind them: so they give up after a tenth of a second, and try again later.
    for attempt in range(_TRIES):
        try:
            with transaction.atomic(connection.alias), connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_MS}ms'")
                for statement in statements:
                    cursor.execute(statement)
        except OperationalError as error:
            is_busy = isinstance(error.__cause__, LockNotAvailable)
            if not is_busy or attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def partitions_before(connection: BaseDatabaseWrapper, at: datetime) -> list[str]:
    """The partitions whose events all happened before `at`, oldest first."""
    if not is_partitioned(connection):
        return []
    return [name for name, end in sorted(_partitions(connection).items()) if end <= at]


def _partitions(connection: BaseDatabaseWrapper) -> dict[str, datetime]:
    """Each month's partition and the moment at which its month ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relid::regclass::text FROM pg_partition_tree(%s::regclass) WHERE isleaf",
            [TABLE],
        )
        names = [name for (name,) in cursor.fetchall()]
    matches = [match for name in names if (match := _NAME.fullmatch(name))]
    return {m[0]: _next_month(datetime(int(m[1]), int(m[2]), 1, tzinfo=UTC)) for m in matches}


def _months(at: datetime, count: int) -> Iterator[tuple[datetime, datetime]]:
    begin = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(count):
        end = _next_month(begin)
        yield begin, end
        begin = end


def _next_month(begin: datetime) -> datetime:
    return (begin + timedelta(days=32)).replace(day=1)


def _name(begin: datetime) -> str:
    return f"{TABLE}_{begin:%Y_%m}"
