"""How often an address may use the sandbox: its secrets are public, and each login is recorded.

Each process counts for itself, in memory that does not grow.
"""

from datetime import datetime
from functools import cache

from tokens.operations.recording import buckets
from tokens.rate_limits.backoff import Backoff, BucketState
from tokens.rate_limits.throttle import Throttle

# At once enough for every test of an ERP system, then 8,640 a day without an end.
SANDBOX_BACKOFF = Backoff(free=500, cap_seconds=10)


class SandboxAddresses:
    """The logins of each address: one number of a bucket for each, as for rejected requests."""

    def __init__(self) -> None:
        self._states: dict[int, BucketState] = {}

    def count(self, address: str | None, at: datetime) -> Throttle | None:
        """Counts one login; or a Throttle if its address has to wait, then it is not counted."""
        bucket = buckets().of_rejections(address)
        state = self._states.get(bucket)
        if state is not None and state.retry_at > max(at, state.last_at):
            return Throttle(state.retry_at)
        self._states[bucket] = SANDBOX_BACKOFF.next_state(state, at)
        return None


@cache
def sandbox_addresses() -> SandboxAddresses:
    """Those of this process."""
    return SandboxAddresses()
