"""Logins and refusals of the last 24 hours and 30 days, and the top reasons (contract 1)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Sum
from django.db.models.functions import TruncDay
from django.utils import timezone

from tokens.login_events.hourly_counts import CountingProgress, by_hour
from tokens.login_events.partitions import first_id
from tokens.models import LoginCount

HOURS, DAYS = 24, 30
_MAX_REASONS = 8
_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Bar:
    """The logins that began in one hour or on one day."""

    begins: datetime
    issued: int
    refused: int


@dataclass(frozen=True, slots=True)
class Period:
    """The bars, the oldest first, and their totals."""

    bars: tuple[Bar, ...]
    reasons: Counter[str]

    @property
    def issued(self) -> int:
        return sum(bar.issued for bar in self.bars)

    @property
    def refused(self) -> int:
        return sum(bar.refused for bar in self.bars)

    @property
    def total(self) -> int:
        return self.issued + self.refused


@dataclass(frozen=True, slots=True)
class TopReason:
    reason: str
    in_hours: int
    in_days: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Both periods; `lacks_latest`: older logins must be counted before the latest ones."""

    hours: Period
    days: Period
    lacks_latest: bool

    @property
    def top_reasons(self) -> list[TopReason]:
        """The most frequent reasons of the last hours first, then those of the last days."""
        hours, days = self.hours.reasons, self.days.reasons
        ordered = sorted(days, key=lambda reason: (-hours[reason], -days[reason], reason))
        return [TopReason(r, hours[r], days[r]) for r in ordered[:_MAX_REASONS]]


LoginCounts = Iterable[tuple[datetime, str, int]]  # start of the hour or day, reason, logins


def traffic(at: datetime, counted: CountingProgress) -> Traffic:
    """The traffic until now: stored hourly counts, plus a live count of the latest logins."""
    zone = timezone.get_default_timezone()
    this_hour = timezone.localtime(at, zone).replace(minute=0, second=0, microsecond=0)
    # In UTC no hour is missing or repeated when clocks change.
    last = this_hour.astimezone(UTC)
    hours = [last - timedelta(hours=back) for back in range(HOURS - 1, -1, -1)]
    days = list(_days(this_hour))
    live = {} if counted.is_behind else by_hour(counted.next_id, first_id(at + _CLOCKS_DIFFER))
    tail = [(hour, reason, logins) for (hour, reason), logins in live.items()]
    return Traffic(
        hours=_period(hours, [*_counted_hours(hours[0]), *tail]),
        days=_period(
            days,
            [
                *_counted_days(days[0]),
                *((_midnight(timezone.localtime(h, zone)), r, n) for h, r, n in tail),
            ],
        ),
        lacks_latest=counted.is_behind,
    )


def _period(begins: list[datetime], counts: LoginCounts) -> Period:
    issued: Counter[datetime] = Counter()
    refused: Counter[datetime] = Counter()
    reasons: Counter[str] = Counter()
    shown = set(begins)
    for begin, reason, logins in counts:
        if begin not in shown:
            continue
        if reason:
            refused[begin] += logins
            reasons[reason] += logins
        else:
            issued[begin] += logins
    return Period(tuple(Bar(b, issued[b], refused[b]) for b in begins), reasons)


def _counted_hours(since: datetime) -> LoginCounts:
    return LoginCount.objects.filter(hour__gte=since).values_list("hour", "reason", "logins")


def _counted_days(since: datetime) -> LoginCounts:
    day = TruncDay("hour", tzinfo=timezone.get_default_timezone())
    counted = LoginCount.objects.filter(hour__gte=since).values_list(day, "reason")
    return counted.annotate(Sum("logins"))


def _days(now: datetime) -> Iterator[datetime]:
    for back in range(DAYS - 1, -1, -1):
        yield _midnight(now - timedelta(days=back))


def _midnight(local: datetime) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0)
