"""The seconds since this machine started, by a clock that cannot be set. Pure."""

import time


def uptime() -> float:
    """It goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
