"""How many connections each process of the server has, in memory that all of them share.

A process that has more than another one lets that one accept first. Without this a burst of
connections goes to whichever process wakes first: 16 of 16, as often as 8.
"""

import mmap

_SLOTS = 1024
_FREE = -1
_NEVER_LEAST = 2**31 - 1


class ConnectionCounts:
    """One count for each process. Made before the fork, so that all see the same memory."""

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, 4 * _SLOTS)).cast("i")
        for slot in range(_SLOTS):
            self._counts[slot] = _FREE
        self._end = 0  # no slot from here on was ever used; grows in the parent, before the fork

    def take_slot(self) -> int:
        """A slot for a process that starts. Called in the parent."""
        slot = next(slot for slot in range(_SLOTS) if self._counts[slot] == _FREE)
        self._counts[slot] = 0
        self._end = max(self._end, slot + 1)
        return slot

    def release_slot(self, slot: int) -> None:
        """The process has ended, however it did. Called in the parent."""
        self._counts[slot] = _FREE

    def publish(self, slot: int, count: int) -> None:
        """Called by the process of this slot."""
        if self._counts[slot] != _NEVER_LEAST:
            self._counts[slot] = count

    def withdraw(self, slot: int) -> None:
        """The process of this slot accepts no more: others do not wait for it."""
        self._counts[slot] = _NEVER_LEAST

    def has_more_than_another(self, slot: int, unpublished: int = 0) -> bool:
        """Whether another process should accept the next connection.

        `unpublished` more are this process's already. Among hundreds, an eighth is no difference.
        """
        own = self._counts[slot] + unpublished
        # Two more than those of this process's start: a later process may have the next slot.
        others = self._counts[: self._end + 2]
        return any(_FREE < count < own - own // 8 for count in others)

    def next_step(self, slot: int) -> int:
        """How many it accepts when another one should, and does not: a crowd must not wait."""
        count = self._counts[slot]
        return 1 if count == _NEVER_LEAST else 1 + count // 8


counts = ConnectionCounts()
