"""Which partitions the login events have: one for each month, on PostgreSQL (contract 5).

The key of an event is a UUIDv7, which begins with the time, so each partition is a range of keys.
Events of a month without a partition go into the default one. SQLite has no partitions.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "login_events"
DEFAULT_PARTITION = f"{TABLE}_default"
_NAME = re.compile(rf"{TABLE}_(\d{{4}})_(\d{{2}})")


def first_id(at: datetime) -> UUID:
    """The lowest id that an event of the moment `at` or later can have (RFC 9562 section 5.7).

    A moment before 1970 counts as 1970, where the time of a UUIDv7 begins.
    """
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def is_partitioned(connection: BaseDatabaseWrapper) -> bool:
    """Whether this database has partitions."""
    return connection.vendor == "postgresql"


def has_partition(connection: BaseDatabaseWrapper, at: datetime) -> bool:
    """Whether the month of `at` has a partition, or needs none."""
    if not is_partitioned(connection):
        return True
    return partition_name(at.astimezone(UTC)) in partition_ends(connection)


def partitions_before(connection: BaseDatabaseWrapper, at: datetime) -> list[str]:
    """The partitions whose events all happened before `at`, oldest first."""
    if not is_partitioned(connection):
        return []
    return [name for name, end in sorted(partition_ends(connection).items()) if end <= at]


def partition_ends(connection: BaseDatabaseWrapper) -> dict[str, datetime]:
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


def months_from(at: datetime, count: int) -> Iterator[tuple[datetime, datetime]]:
    """The month of `at` in UTC and those after it, each with the beginning of the next one."""
    begin = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(count):
        end = _next_month(begin)
        yield begin, end
        begin = end


def _next_month(begin: datetime) -> datetime:
    return (begin + timedelta(days=32)).replace(day=1)
