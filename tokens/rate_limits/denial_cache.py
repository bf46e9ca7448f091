"""The throttled callers that this process remembers, so that they cost no query (contract 1)."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime

from tokens.rate_limits.throttle import Throttle


class DenialCache:
    """At most `size` throttles by key; the oldest are dropped first."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._throttles: OrderedDict[Hashable, Throttle] = OrderedDict()

    def __len__(self) -> int:
        return len(self._throttles)

    def remember(self, key: Hashable, throttle: Throttle) -> None:
        self._throttles[key] = throttle
        while len(self._throttles) > self._size:
            self._throttles.popitem(last=False)

    def find(self, key: Hashable, at: datetime) -> Throttle | None:
        """The throttle that still applies at the moment `at`; one that has ended is dropped."""
        throttle = self._throttles.get(key)
        if throttle is not None and throttle.retry_at <= at:
            self._throttles.pop(key, None)
            return None
        return throttle
