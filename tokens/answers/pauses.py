"""How long clients wait after a 503 (`Retry-After`): spread, and longer the more of them come.

After an outage every client whose token has ended comes at once. Each process tells so many to
wait for so long that about `_RETURNING` of them come back to it in a second.
"""

import random

from tokens.uptime import uptime

_LEAST_SECONDS = 5
_SHORTEST, _LONGEST = 10.0, 300.0  # seconds over which they are spread
_RETURNING = 200.0
_TURN_SECONDS = 5.0


class Pauses:
    """Those of one process. In each turn it counts, and spreads the next by what it has counted."""

    def __init__(self, now: float) -> None:
        self._began_at, self._count = now, 0
        self._spread = _SHORTEST

    def next(self, now: float) -> int:
        """For one more client: whole seconds. `now`: seconds of a clock that only goes forward."""
        took = now - self._began_at
        if took >= _TURN_SECONDS:
            wanted = self._spread * self._count / took / _RETURNING
            self._spread = min(max(wanted, _SHORTEST), _LONGEST)
            self._began_at, self._count = now, 0
        self._count += 1
        return _LEAST_SECONDS + int(random.random() * (self._spread + 1))  # noqa: S311 - no secret


_pauses = Pauses(uptime())


def pause_seconds() -> int:
    """`Retry-After` of the next 503 of this process."""
    return _pauses.next(uptime())
