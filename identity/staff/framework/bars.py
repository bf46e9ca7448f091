"""A bar chart drawn by the server: the bars of an SVG, which need no script."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

BAR_WIDTH, GAP, HEIGHT = 7, 2, 40
_LEAST = 3  # the height of the smallest number that is not 0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; its parts, from below, each with y and height, and what it leads to."""

    label: str
    numbers: tuple[int, ...]
    x: int
    parts: list[tuple[int, int]]
    url: str


@dataclass(frozen=True, slots=True)
class Bars:
    bars: list[Bar]
    width: int
    height: ClassVar = HEIGHT
    bar_width: ClassVar = BAR_WIDTH


def draw_bars(rows: Sequence[tuple[str, tuple[int, ...], str]], highest: int) -> Bars:
    """A bar for each label, numbers and URL; `highest` is the sum of a bar as high as the chart."""
    bars = []
    for position, (label, numbers, url) in enumerate(rows):
        parts: list[tuple[int, int]] = []
        top = HEIGHT
        for number in numbers:
            height = max(_LEAST, round(HEIGHT * number / highest)) if number else 0
            top -= height
            parts.append((top, height))
        bars.append(Bar(label, numbers, position * (BAR_WIDTH + GAP), parts, url))
    return Bars(bars, len(bars) * (BAR_WIDTH + GAP) - GAP)
