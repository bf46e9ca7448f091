"""Whose each index is, in memory: the database may be away when a client must be blocked.

One number for each index, made of its client's ID. What is new is read twice a second, the rest
a few thousand rows at a time.
"""

import hashlib
from array import array
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.db import connection

from taxpayers.facts.query import aware
from taxpayers.sql import fetch_through_django
from tokens.uptime import uptime

_ROWS = 2_000
_BUSY_SECONDS = 0.1  # of each turn, until all are read
# A row is seen so long after its moment at the latest, and most often much sooner. Rows of the
# longer time are read again only when it has passed: first logins may be a thousand a second.
_MOST_OFTEN, _UNDER_WAY = timedelta(seconds=1), timedelta(seconds=10)
_READ_ALL_AFTER = timedelta(hours=6)  # after a restore the same numbers may be other indexes
_NEXT = """
SELECT x.taken_at, x."index", u.client_id FROM status_indexes x
JOIN system_users u ON u.id = x.system_user_id
WHERE x.taken_at >= %s AND (x.taken_at > %s OR x."index" > %s)
ORDER BY x.taken_at, x."index" LIMIT %s"""
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)


class Owners:
    """The owner of each index, as far as it was read. `version` grows with what is known."""

    def __init__(self) -> None:
        self._owners = array("Q")
        self.version = 0
        self._began_at = self._looked_back_at = _NEVER
        self._place = (_NEVER, -1)  # of the last row that was read

    def read(self, now: datetime) -> None:
        """Reads what is new, and more of the old, by the database's clock. Raises DatabaseError."""
        began = uptime()
        if now - self._began_at > _READ_ALL_AFTER:
            self._began_at = self._looked_back_at = now
            self._place = (_NEVER, -1)
        while uptime() - began < _BUSY_SECONDS:
            at, index = self._place
            rows = fetch_through_django(_NEXT, [_stored(at), _stored(at), index, _ROWS])
            for _moment, number, client_id in rows:
                self._set(number, _number_of(client_id))
            if len(rows) < _ROWS:  # all of them
                self._place = self._again_from(now), -1
                return
            self._place = aware(rows[-1][0]), rows[-1][1]

    def indexes_of(self, client_ids: Collection[str]) -> frozenset[int]:
        """All that these clients are known to have."""
        if not client_ids:  # most often
            return frozenset()
        owners = {_number_of(client_id) for client_id in client_ids}
        return frozenset(n for n, owner in enumerate(self._owners) if owner in owners)

    def _again_from(self, now: datetime) -> datetime:
        """The first moment of rows that may not have been committed when these were read."""
        if now - self._looked_back_at < _UNDER_WAY:
            return now - _MOST_OFTEN
        before, self._looked_back_at = self._looked_back_at, now
        return before - _UNDER_WAY

    def _set(self, index: int, owner: int) -> None:
        if index >= len(self._owners):
            self._owners.extend([0] * (index + 1 - len(self._owners)))
        if self._owners[index] != owner:
            self._owners[index] = owner
            self.version += 1


def _stored(at: datetime) -> object:
    if connection.vendor == "postgresql":
        return at
    return at.replace(tzinfo=None).isoformat(" ", "milliseconds")  # as SQLite's default writes it


def _number_of(client_id: str) -> int:
    return int.from_bytes(hashlib.sha256(client_id.encode()).digest()[:8])
