"""A session that changes the registry: at once, or in a transaction that stays open for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from proofs.interleavings.changes.change import Change, Context, NothingToChange
from proofs.interleavings.simulated_time import LOCK_TIMEOUT
from taxpayers.services import ServiceError


@contextmanager
def in_use(other: BaseDatabaseWrapper) -> Iterator[None]:
    """Django's present connection is this one."""
    before = connections["default"]
    connections["default"] = other
    try:
        yield
    finally:
        connections["default"] = before


class ChangingSession:
    """Changes that are not committed yet, on a separate connection."""

    def __init__(self) -> None:
        self._connection: BaseDatabaseWrapper = connection.copy()
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout TO '{LOCK_TIMEOUT}'")
        self.open: list[Change] = []

    def make(self, change: Change, context: Context) -> bool:
        """Whether something was changed. A change that meets a lock ends the transaction."""
        if not self.open:
            self._connection.set_autocommit(False)
        try:
            with in_use(self._connection):
                change.make(context)
        except (NothingToChange, ObjectDoesNotExist, ServiceError):  # or gone since the last commit
            if not self.open:
                self.roll_back()
            return False
        except DatabaseError:
            self.roll_back()
            return False
        self.open.append(change)
        return True

    def commit(self) -> list[Change]:
        """What is now in force; nothing if the database refused it."""
        made = self.open
        try:
            self._connection.commit()
        except DatabaseError:
            made = []
        self.roll_back()
        return made

    def roll_back(self) -> None:
        """Ends the transaction."""
        self.open = []
        self._connection.rollback()
        self._connection.set_autocommit(True)

    def execute(self, sql: str) -> None:
        """On its own, while nothing is open."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def close(self) -> None:
        if self.open:
            self.roll_back()
        self._connection.close()
