"""The two clocks: the time of day for what tokens say, and one that is never set for caches."""

import time


class Clock:
    """The clocks of this machine; a test has others."""

    def wall(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; it only goes forward."""
        return time.monotonic()
