"""How often one caller may call one process: so many at once, then one after the other. Pure."""

from collections import OrderedDict
from collections.abc import Hashable


class CallLimit:
    """Of the last `size` callers, by key.

    The generic cell rate algorithm: of each caller the moment is stored at which all of its calls
    would be over, had they come at that pace.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._over: OrderedDict[Hashable, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._over)

    def seconds_to_wait(self, key: Hashable, now: float, *, burst: int, seconds: float) -> float:
        """0: the call is counted. `burst` calls may come at once, and one more each `seconds`."""
        over = max(self._over.get(key, now), now)
        if (wait := over - now - (burst - 1) * seconds) > 0:
            return wait
        self._over[key] = over + seconds
        self._over.move_to_end(key)
        if len(self._over) > self._size:
            self._over.popitem(last=False)
        return 0
