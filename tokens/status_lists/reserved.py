"""Indexes of the status lists that this process may give to new tokens, without a statement more.

They were reserved together with one that is used; only this process uses them. Those that are
left when the process ends remain unused: a bit each.
"""

import secrets
from collections import deque

from tokens.calls import TakenIndex

RESERVE = 256
_VERSION_BITS = 63


class ReservedIndexes:
    """Those of one process, of which `wanted` more are to be reserved when there is none left."""

    def __init__(self, wanted: int = RESERVE) -> None:
        self.wanted = wanted
        self._numbers: deque[int] = deque()

    def take(self) -> tuple[int, int] | None:
        """An index that is never given again, and a version for its row; None if none is left."""
        if not self._numbers:
            return None
        return self._numbers.popleft(), secrets.randbits(_VERSION_BITS)

    def add(self, taken: TakenIndex) -> None:
        """Those that came with another one."""
        self._numbers.extend(taken.reserved)


# For a login that must take its index from the database.
NONE_RESERVED = ReservedIndexes(wanted=0)
