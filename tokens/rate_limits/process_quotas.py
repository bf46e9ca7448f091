"""The limit of what only this process counts: for each client, as many as it may log in.

For requests that store a row and gain nothing: a few processes are a bound that is good enough.
"""

from collections import OrderedDict
from datetime import datetime

from tokens.rate_limits.quota import CounterState, count_login
from tokens.rate_limits.throttle import Throttle


class ProcessQuotas:
    """The latest windows of at most `size` clients; the one that was counted longest ago goes."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._counters: OrderedDict[int, CounterState] = OrderedDict()

    def count(self, client: int, limit: int, at: datetime) -> Throttle | None:
        """Counts one more of this client; a Throttle if that is too many. `limit` 0: never."""
        outcome = count_login(self._counters.get(client), limit, at)
        if isinstance(outcome, Throttle):
            return outcome
        self._counters[client] = CounterState(outcome.window_started_at, outcome.used)
        self._counters.move_to_end(client)
        if len(self._counters) > self._size:
            self._counters.popitem(last=False)
        return None
