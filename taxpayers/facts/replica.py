"""The registry, read from a replica of the database while that is fresh enough.

Off unless REPLICA_DATABASE_URL names one, because a replica lags: what it answers may be up to
REPLICA_MAX_LAG_SECONDS old, and so may a block. A replica that lags more is not used
(docs/scaling.md).
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections

from taxpayers.sql import Row, fetch, fetch_with_reconnect

ALIAS = "replica"
_CHECK_AGAIN_SECONDS = 0.2  # while it lags too much
_RETRY_SECONDS = 5.0  # after it failed

# NULL on a primary, and before the first commit was replayed. It grows while nothing is committed:
# then the primary has nothing else to do, and is read itself.
_LAG = "SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"


class Freshness:
    """Until when a replica is fresh enough; one for all threads of a process.

    What was replayed stays replayed, so one measurement is valid until `bound_seconds` are over.
    """

    def __init__(
        self,
        bound_seconds: float,
        lag: Callable[[], float | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bound_seconds, self._lag, self._clock = bound_seconds, lag, clock
        self._fresh_until = self._check_at = float("-inf")

    def holds(self) -> bool:
        """Whether the data of the replica are at most `bound_seconds` old. Raises DatabaseError."""
        now = self._clock()
        if now < self._fresh_until:
            return True
        if now < self._check_at:
            return False
        self._check_at = now + _CHECK_AGAIN_SECONDS
        lag = self._lag()
        # A commit from the future means that the clocks differ by that much.
        if lag is None or abs(lag) >= self._bound_seconds:
            return False
        self._fresh_until = now + self._bound_seconds - abs(lag)
        return True

    def failed(self) -> None:
        """The replica cannot be reached: do not try again for a while."""
        self._fresh_until, self._check_at = float("-inf"), self._clock() + _RETRY_SECONDS


def fetch_registry(sql: str, parameters: Sequence[Any]) -> list[Row]:
    """The rows of a statement that changes nothing, from the replica if that is fresh enough.

    What the replica does not find, like a secret issued a moment ago, is read from the primary.
    Raises django.db.DatabaseError, never because of the replica.
    """
    freshness = _freshness()
    if freshness is not None:
        try:
            rows = fetch(sql, parameters, ALIAS) if freshness.holds() else []
        except DatabaseError:
            freshness.failed()
            connections[ALIAS].close()
        else:
            if rows:
                return rows
    return fetch_with_reconnect(sql, parameters)


@cache
def _freshness() -> Freshness | None:
    if ALIAS not in settings.DATABASES:
        return None
    return Freshness(settings.REPLICA_MAX_LAG_SECONDS, _lag_of_replica)


def _lag_of_replica() -> float | None:
    ((lag,),) = fetch(_LAG, (), ALIAS)
    return None if lag is None else float(lag)
