"""The answer "not now": until when a caller has to wait (contract 1, Limits). Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil

from taxpayers.rules import Refused
from tokens.refusals.table import ProtocolReason


class ThrottleCause(StrEnum):
    """Of what there was too much; the values are labels of the metrics."""

    LOGINS = "logins"
    FAILURES = "failures"
    REJECTIONS = "rejections"
    REVOCATIONS = "revocations"


@dataclass(frozen=True, slots=True)
class Throttle:
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
