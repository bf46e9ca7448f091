"""The figures as a table for people and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.measure import Row

_HEADINGS = (
    *("who", "connections", "x bare view", "CPU ms", "server", "database"),
    *("per second", "p50 ms", "p99 ms", "MB a worker"),
)


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table, in the order of its headings."""
    figures = row.figures
    return (
        row.case,
        str(row.connections),
        f"{row.ratio:.2f}",
        f"{figures.cpu_ms:.3f}",
        f"{figures.server_cpu_ms:.3f}",
        f"{figures.database_cpu_ms:.3f}",
        f"{figures.per_second:.0f}",
        f"{figures.p50_ms:.1f}",
        f"{figures.p99_ms:.1f}",
        f"{figures.worker_mb:.0f}",
    )


def as_text(rows: Sequence[Row]) -> str:
    """The table in columns, for a terminal."""
    lines = [_HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def as_markdown(rows: Sequence[Row]) -> str:
    """The same table for a page of the documentation."""
    lines = [_HEADINGS, ("---", *("--:" for _ in _HEADINGS[1:])), *(cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_json(rows: Sequence[Row], facts: dict[str, object], file: Path) -> None:
    """Every figure, and what else is known of the run."""
    file.write_text(
        json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=1), encoding="utf-8"
    )
