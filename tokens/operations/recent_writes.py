"""Whether the database stored the logins of the last seconds, as this process saw it (contract 1).

Only what no client can cause counts as a failure: locked rows and overload do not.
"""

from typing import NamedTuple

import psycopg
from django.db import DatabaseError

from taxpayers.async_sql import ConnectionLost, NoConnection, SentTooLate
from tokens.uptime import uptime

WINDOW_SECONDS = 5
# Classes of SQLSTATE: connection, read-only, no resources, stopped, input and output, corrupted.
_OF_THE_DATABASE = ("08", "25", "53", "57", "58", "XX")
_OUR_TIMEOUT = "57014"  # of a statement: the database is slow, which clients can cause


class _Second(NamedTuple):
    begin: int
    stored: int
    failed: int


class RecentWrites:
    """One for each process."""

    def __init__(self) -> None:
        self._seconds: list[_Second] = []
        self.last_fault = ""

    def stored(self) -> None:
        """A login is in the database."""
        self._count(1, 0)

    def failed(self, error: Exception) -> None:
        """A request got no answer from the database; counted if no client can have caused it."""
        if fault := fault_of_database(error):
            self.last_fault = fault
            self._count(0, 1)

    def sums(self) -> tuple[int, int]:
        """How many were stored, and how many failed."""
        recent = self._recent(int(uptime()))
        return sum(one.stored for one in recent), sum(one.failed for one in recent)

    def _count(self, stored: int, failed: int) -> None:
        now = int(uptime())
        seconds = self._seconds
        if seconds and seconds[-1].begin == now:
            last = seconds[-1]
            seconds[-1] = _Second(now, last.stored + stored, last.failed + failed)
        else:  # a new list: another thread may be reading this one
            self._seconds = [*self._recent(now), _Second(now, stored, failed)]

    def _recent(self, now: int) -> list[_Second]:
        return [one for one in self._seconds if one.begin > now - WINDOW_SECONDS]


def fault_of_database(error: Exception) -> str | None:
    """The name of a fault of the database, such as DiskFull; None if a client can have caused it.

    Its text is only for the log: it may name addresses and files.
    """
    cause = error.__cause__
    if isinstance(error, SentTooLate):
        return None
    if isinstance(error, NoConnection | ConnectionLost):
        return type(error).__name__
    if isinstance(error, DatabaseError) and isinstance(cause, psycopg.Error):
        state = cause.sqlstate or "08"
        is_fault = state.startswith(_OF_THE_DATABASE) and state != _OUR_TIMEOUT
        return type(cause).__name__ if is_fault else None
    return None


recent_writes = RecentWrites()
