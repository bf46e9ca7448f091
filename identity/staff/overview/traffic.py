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
FULL_HOURS, WEEK = timedelta(hours=24), timedelta(days=7)
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
    """Both periods; `lacks_latest`: older logins must be counted before the latest ones.

    `full_hours`: the latest 24 hours that are over, by reason; `week_ago`: the same hours, 7 days
    earlier. `full_hours_begin` is when the first of them began.
    """

    hours: Period
    days: Period
    lacks_latest: bool
    full_hours_begin: datetime
    full_hours: Counter[str]
    week_ago: Counter[str]

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
    begin = last - FULL_HOURS
    live = {} if counted.is_behind else by_hour(counted.next_id, first_id(at + _CLOCKS_DIFFER))
    tail = [(hour, reason, logins) for (hour, reason), logins in live.items()]
    recent = [*_counted_hours(begin), *tail]
    return Traffic(
        hours=_period(hours, recent),
        days=_period(
            days,
            [
                *_counted_days(days[0]),
                *((_midnight(timezone.localtime(h, zone)), r, n) for h, r, n in tail),
            ],
        ),
        lacks_latest=counted.is_behind,
        full_hours_begin=begin,
        full_hours=_by_reason(recent, begin, last),
        week_ago=_by_reason(_counted_hours(begin - WEEK, last - WEEK), begin - WEEK, last - WEEK),
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


def _by_reason(counts: LoginCounts, begin: datetime, end: datetime) -> Counter[str]:
    found: Counter[str] = Counter()
    for hour, reason, logins in counts:
        if begin <= hour < end:
            found[reason] += logins
    return found


def _counted_hours(since: datetime, before: datetime | None = None) -> LoginCounts:
    counts = LoginCount.objects.filter(hour__gte=since)
    if before is not None:
        counts = counts.filter(hour__lt=before)
    return counts.values_list("hour", "reason", "logins")


def _counted_days(since: datetime) -> LoginCounts:
    day = TruncDay("hour", tzinfo=timezone.get_default_timezone())
    counted = LoginCount.objects.filter(hour__gte=since).values_list(day, "reason")
    return counted.annotate(Sum("logins"))


def _days(now: datetime) -> Iterator[datetime]:
    for back in range(DAYS - 1, -1, -1):
        yield _midnight(now - timedelta(days=back))


def _midnight(local: datetime) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0)
