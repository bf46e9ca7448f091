"""Charts for Chart.js, drawn by the theme from attributes; needs no script of ours."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from identity.staff.overview.traffic import Bar

# Different in lightness as well as in colour; visible on light and dark pages.
_ISSUED, _REFUSED, _TEXT = "#3b82f6", "#dc2626", "#737c8c"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, and the same figures as rows for a table: label, issued, refused, URL.

    `urls` has the URL of each bar: overview.js opens it.
    """

    data: str
    options: str
    urls: str
    rows: list[tuple[str, int, int, str]]


def chart_of(bars: Sequence[Bar], url: Callable[[datetime], str]) -> Chart:
    """A stacked bar chart of issued and refused logins."""
    rows = [(_hour(bar), bar.issued, bar.refused, url(bar.begins)) for bar in bars]
    data = {
        "labels": [row[0] for row in rows],
        "datasets": [
            _dataset(_("Token issued"), [bar.issued for bar in bars], _ISSUED),
            _dataset(_("Refused"), [bar.refused for bar in bars], _REFUSED),
        ],
    }
    urls = json.dumps([row[-1] for row in rows])
    return Chart(json.dumps(data), json.dumps(_OPTIONS), urls, rows)


def _hour(bar: Bar) -> str:
    return formats.date_format(timezone.localtime(bar.begins), "H:i")


def _dataset(label: str, figures: list[int], colour: str) -> dict[str, Any]:
    return {
        "label": label,
        "data": figures,
        "backgroundColor": colour,
        "hoverBackgroundColor": colour,
    }


_TICKS = {"color": _TEXT, "maxRotation": 0, "autoSkipPadding": 12}
_OPTIONS = {
    "animation": False,
    "responsive": True,
    "maintainAspectRatio": False,
    "interaction": {"mode": "index", "intersect": False},
    "plugins": {
        "legend": {"align": "end", "labels": {"boxWidth": 10, "boxHeight": 10, "color": _TEXT}}
    },
    "scales": {
        "x": {"stacked": True, "grid": {"display": False}, "ticks": _TICKS},
        "y": {"stacked": True, "beginAtZero": True, "ticks": {**_TICKS, "precision": 0}},
    },
}
