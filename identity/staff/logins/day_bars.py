"""A small chart of a number for each day, drawn by the server: bars of an SVG and a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

BAR_WIDTH, GAP, HEIGHT = 7, 2, 40
_LEAST = 3  # the height of the smallest number that is not 0


@dataclass(frozen=True, slots=True)
class DayBar:
    """One day: its number, and where its bar is."""

    day: date
    number: int
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class DayBars:
    """The bars, the oldest first; `sentence` says what they show."""

    bars: tuple[DayBar, ...]
    sentence: str

    @property
    def width(self) -> int:
        return len(self.bars) * (BAR_WIDTH + GAP) - GAP

    @property
    def height(self) -> int:
        return HEIGHT

    @property
    def bar_width(self) -> int:
        return BAR_WIDTH


def day_bars(days: Sequence[date], numbers: Mapping[date, int], highest: int) -> DayBars:
    """The chart of these days; `highest` is the number of a bar as high as the chart."""
    bars = []
    for position, day in enumerate(days):
        number = numbers.get(day, 0)
        height = max(_LEAST, round(HEIGHT * number / highest)) if number else 0
        bars.append(DayBar(day, number, position * (BAR_WIDTH + GAP), HEIGHT - height, height))
    return DayBars(tuple(bars), _sentence(bars))


def _sentence(bars: Sequence[DayBar]) -> str:
    used = [bar for bar in bars if bar.number]
    if not used:
        return _("No login with a token in the last {days} days.").format(days=len(bars))
    most = max(used, key=lambda bar: bar.number)
    total = sum(bar.number for bar in used)
    logins = ngettext("{count} login with a token", "{count} logins with a token", total).format(
        count=total
    )
    return _("{logins}, on {used} of the last {days} days. Most on {day}: {most}.").format(
        logins=logins,
        used=len(used),
        days=len(bars),
        day=formats.date_format(most.day, "j M"),
        most=most.number,
    )
