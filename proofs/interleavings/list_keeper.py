"""The process that ends indexes of the status lists, in the time of a run."""

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from proofs.interleavings.changes.session import in_use
from proofs.interleavings.simulated_time import SEARCH_PATH, SHOW_TIME, SimulatedTime
from tokens.status_lists import ending

# One thread acts, so who has to wait here would wait for ever.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout TO '2ms'"


class ListKeeper:
    """One for each run, on a separate connection."""

    def __init__(self, time: SimulatedTime) -> None:
        self._time = time
        self._connection: BaseDatabaseWrapper = connection.copy()
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET search_path TO {SEARCH_PATH}")

    def end_indexes(self) -> None:
        """As twice a second in each process of the service."""
        with in_use(self._connection), pytest.MonkeyPatch.context() as patch:
            patch.setattr(ending, "_LOCK_TIMEOUT", _LOCK_TIMEOUT)
            with self._connection.cursor() as cursor:
                cursor.execute(SHOW_TIME, [self._time.now.isoformat()])
            ending.end_indexes(self._time.now)

    def close(self) -> None:
        self._connection.close()
