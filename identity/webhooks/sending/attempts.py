"""What an attempt has come to, and when the next one is made, as in Standard Webhooks. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
MOST_ATTEMPTS = len(_DELAYS) + 1
_JITTER = 0.25  # a delay is longer by up to this part of it
_LONGEST_RETRY_AFTER = timedelta(days=1)
_LONGEST_PAUSE = timedelta(minutes=5)
_GONE = 410
_OVERLOADED = (429, 502, 503, 504)

Random = Callable[[], float]  # from 0 to 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back: a status, or the fault that there was none; `retry_after` as it was sent."""

    status: int = 0
    fault: str = ""
    retry_after: str = ""

    def __str__(self) -> str:
        return self.fault or f"HTTP {self.status}"

    @property
    def is_success(self) -> bool:
        return 200 <= self.status <= 299

    @property
    def is_gone(self) -> bool:
        """The receiver wants no more messages at all."""
        return self.status == _GONE

    @property
    def is_about_the_receiver(self) -> bool:
        """Another message would probably meet the same: the receiver is away, or has too much."""
        return not self.status or self.status in _OVERLOADED


def next_attempt(attempts: int, outcome: Outcome, at: datetime, jitter: Random) -> datetime | None:
    """When to try again after so many attempts, of which this was the last; None: no more."""
    if attempts >= MOST_ATTEMPTS:
        return None
    delay = _DELAYS[attempts - 1] * (1 + _JITTER * jitter())
    return at + max(delay, retry_after(outcome, at))


def pause_until(failures: int, outcome: Outcome, at: datetime) -> datetime:
    """Until when the receiver gets nothing at all, after so many failures one after the other."""
    pause = min(timedelta(seconds=2 ** min(failures, 16)), _LONGEST_PAUSE)
    return at + max(pause, retry_after(outcome, at))


def retry_after(outcome: Outcome, at: datetime) -> timedelta:
    """What the receiver has asked for (RFC 9110 section 10.2.3), at most a day; else zero."""
    text = outcome.retry_after.strip()
    try:
        if text.isascii() and text.isdigit():
            wait = timedelta(seconds=int(text[:9]))
        else:
            moment = parsedate_to_datetime(text)
            wait = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - at
    except (ValueError, OverflowError):  # no date, or none that Python can hold
        return timedelta()
    return min(max(wait, timedelta()), _LONGEST_RETRY_AFTER)
