"""Bars as SVG: plain shapes and text, readable on a light and on a dark page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_WIDTH, _LABELS, _FIGURES = 860, 270, 70
_BAR, _STEP, _TOP, _BOTTOM = 16, 25, 54, 14
_COLOURS = ("#3b7dd8", "#e08a2e")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}"
    ".title{font-weight:600;font-size:15px}.page{fill:#ffffff}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a few parts, in the unit of the chart."""

    label: str
    parts: tuple[float, ...]

    @property
    def length(self) -> float:
        return sum(self.parts)


def draw(file: Path, title: str, parts: Sequence[str], bars: Sequence[Bar]) -> None:
    """Writes the chart; `parts` names the colours."""
    height = _TOP + _STEP * len(bars) + _BOTTOM
    scale = (_WIDTH - _LABELS - _FIGURES) / max(bar.length for bar in bars)
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="10" y="20">{escape(title)}</text>',
        *_legend(parts),
        *(shape for i, bar in enumerate(bars) for shape in _bar(bar, _TOP + i * _STEP, scale)),
        "</svg>",
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(shapes) + "\n", encoding="utf-8")


def _legend(parts: Sequence[str]) -> list[str]:
    shapes = []
    for i, part in enumerate(parts):
        x = _LABELS + i * 150
        shapes.append(f'<rect x="{x}" y="30" width="11" height="11" fill="{_COLOURS[i]}"/>')
        shapes.append(f'<text x="{x + 17}" y="40">{escape(part)}</text>')
    return shapes


def _bar(bar: Bar, y: int, scale: float) -> list[str]:
    middle = y + _BAR - 3
    shapes = [f'<text x="{_LABELS - 8}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>']
    x = float(_LABELS)
    for colour, part in zip(_COLOURS, bar.parts, strict=False):
        width = part * scale
        shapes.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
        )
        x += width
    shapes.append(f'<text x="{x + 6:.1f}" y="{middle}">{bar.length:.2f}</text>')
    return shapes
