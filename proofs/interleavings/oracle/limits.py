"""The serial model of the limits: what the pure functions say about each stored login, in order."""

from datetime import datetime

from proofs.interleavings.failure import ClaimBroken
from tokens.calls import CountedLogin, FailedLogin, RejectedRequest
from tokens.rate_limits.backoff import BucketState, count_failure, count_rejection
from tokens.rate_limits.quota import CounterState, Quota, count_login
from tokens.rate_limits.throttle import Throttle

NEVER = CounterState(datetime.fromisoformat("1970-01-01T00:00:00+00:00"), 0)


class Limits:
    """Counters of clients and buckets of callers, as they must be."""

    def __init__(self) -> None:
        self.counters: dict[int, CounterState] = {}
        self.buckets: dict[int, BucketState] = {}

    def count(self, login: CountedLogin, limit: int, result: Quota, at: datetime) -> None:
        """The login was stored. Raises ClaimBroken if its client's window had no room."""
        before = self.counters.get(login.system_user_id)
        right = count_login(before, limit, at)
        if result != right:
            raise ClaimBroken(f"limits are exact: {before} is followed by {right}, not {result}")
        self.counters[login.system_user_id] = CounterState(right.window_started_at, right.used)

    def fail(self, login: FailedLogin, result: Throttle | None, at: datetime) -> None:
        """The failure was stored, or has to wait. Raises ClaimBroken if it should not."""
        ids = (login.pair_bucket, login.address_bucket)
        right = count_failure(self.buckets.get(ids[0]), self.buckets.get(ids[1]), at)
        if not isinstance(right, Throttle):
            self.buckets |= zip(ids, right, strict=True)
        if result != (right if isinstance(right, Throttle) else None):
            raise ClaimBroken(f"pauses are exact: {right}, not {result}")

    def reject(self, request: RejectedRequest, result: Throttle | None, at: datetime) -> None:
        """The request was stored, or has to wait. Raises ClaimBroken if it should not."""
        right = count_rejection(self.buckets.get(request.bucket), at)
        if not isinstance(right, Throttle):
            self.buckets[request.bucket] = right
        if result != (right if isinstance(right, Throttle) else None):
            raise ClaimBroken(f"pauses are exact: {right}, not {result}")

    def retry_at(self, client: int, limit: int, at: datetime) -> datetime | None:
        """When the client can log in again; None: now."""
        outcome = count_login(self.counters.get(client), limit, at)
        return outcome.retry_at if isinstance(outcome, Throttle) else None
