"""The answer "not now": until when a caller has to wait (contract 1, Limits). Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime
from enum import StrEnum
from math import ceil

from taxpayers.rules import Refused
from taxpayers.value import Value
from tokens.refusals.table import ProtocolReason


class ThrottleCause(StrEnum):
    """Of what there was too much; the values are labels of the metrics."""

    LOGINS = "logins"
    FAILURES = "failures"
    REJECTIONS = "rejections"
    REVOCATIONS = "revocations"


class Throttle(Value):
    """No login is accepted before `retry_at`; `limit` is that of a client's logins, otherwise 0."""

    retry_at: datetime
    limit: int = 0
    secret_expires_at: datetime | None = None

    def retry_after_seconds(self, at: datetime) -> int:
        """Whole seconds to wait, at least one."""
        return max(1, ceil((self.retry_at - at).total_seconds()))


class RateLimited(Refused):
    """A login beyond a limit: nothing is recorded."""

    def __init__(self, throttle: Throttle, cause: ThrottleCause) -> None:
        super().__init__(ProtocolReason.RATE_LIMITED)
        self.throttle = throttle
        self.cause = cause


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
