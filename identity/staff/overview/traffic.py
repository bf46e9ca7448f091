"""Logins and refusals of the last 24 hours, with their chart, and the top reasons (contract 1)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import formats, timezone

from tokens.login_events.hourly_counts import CountingProgress, by_hour
from tokens.login_events.partitions import first_id
from tokens.models import LoginCount

HOURS = 24
_MAX_REASONS = 5
_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class HourOfLogins:
    """The logins that began in one hour."""

    begins: datetime
    issued: int
    refused: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bars, the oldest first; `lacks_latest`: older logins must be counted before."""

    bars: tuple[HourOfLogins, ...]
    reasons: Counter[str]
    lacks_latest: bool

    @property
    def issued(self) -> int:
        return sum(bar.issued for bar in self.bars)

    @property
    def refused(self) -> int:
        return sum(bar.refused for bar in self.bars)

    @property
    def top_reasons(self) -> list[tuple[str, int]]:
        """The most frequent first."""
        return sorted(self.reasons.items(), key=lambda row: (-row[1], row[0]))[:_MAX_REASONS]


BAR_WIDTH, GAP, HEIGHT = 7, 2, 40
_LEAST = 3  # the height of the smallest number that is not 0


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour as a bar of an SVG: its parts, from below, each with y and height; where it leads."""

    label: str
    numbers: tuple[int, int]
    x: int
    parts: list[tuple[int, int]]
    url: str


def draw_bars(rows: Sequence[tuple[HourOfLogins, str]]) -> dict[str, Any]:
    """The chart of these hours, each with its address, for the template: it needs no script."""
    highest = max(hour.issued + hour.refused for hour, _url in rows) or 1
    bars = []
    for position, (hour, url) in enumerate(rows):
        parts: list[tuple[int, int]] = []
        top, numbers = HEIGHT, (hour.issued, hour.refused)
        for number in numbers:
            height = max(_LEAST, round(HEIGHT * number / highest)) if number else 0
            top -= height
            parts.append((top, height))
        label = formats.date_format(timezone.localtime(hour.begins), "H:i")
        bars.append(Bar(label, numbers, position * (BAR_WIDTH + GAP), parts, url))
    width = len(bars) * (BAR_WIDTH + GAP) - GAP
    return {"bars": bars, "width": width, "height": HEIGHT, "bar_width": BAR_WIDTH}


LoginCounts = Iterable[tuple[datetime, str, int]]  # start of the hour, reason, logins


def traffic(at: datetime, counted: CountingProgress) -> Traffic:
    """The traffic until now: stored hourly counts, plus a live count of the latest logins."""
    this_hour = timezone.localtime(at, timezone.get_default_timezone())
    # In UTC no hour is missing or repeated when clocks change.
    last = this_hour.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    begin = last - timedelta(hours=HOURS)
    live = {} if counted.is_behind else by_hour(counted.next_id, first_id(at + _CLOCKS_DIFFER))
    recent = [
        *_counted_hours(begin, at),
        *((hour, reason, logins) for (hour, reason), logins in live.items()),
    ]
    by_bar = [
        (hour, _by_reason(recent, hour, hour + timedelta(hours=1)))
        for hour in (last - timedelta(hours=back) for back in range(HOURS - 1, -1, -1))
    ]
    reasons = sum((found for _hour, found in by_bar), Counter[str]())
    del reasons[""]
    return Traffic(
        bars=tuple(
            HourOfLogins(hour, found[""], found.total() - found[""]) for hour, found in by_bar
        ),
        reasons=reasons,
        lacks_latest=counted.is_behind,
    )


def _by_reason(counts: LoginCounts, begin: datetime, end: datetime) -> Counter[str]:
    found: Counter[str] = Counter()
    for hour, reason, logins in counts:
        if begin <= hour < end:
            found[reason] += logins
    return found


def _counted_hours(since: datetime, before: datetime) -> LoginCounts:
    counts = LoginCount.objects.filter(hour__gte=since, hour__lt=before)
    return counts.values_list("hour", "reason", "logins")
