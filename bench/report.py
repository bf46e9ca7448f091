"""Figures as tables for people: in a terminal, and in a page of the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.measure import Row


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and lines; the first column names, the others are figures."""

    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]

    def as_text(self) -> str:
        """In columns, for a terminal."""
        lines = [self.headings, *self.lines]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )

    def as_markdown(self) -> str:
        rule = ("---", *("--:" for _ in self.headings[1:]))
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.headings, rule, *self.lines))


def table_of(rows: Sequence[Row], *, unit: str) -> Table:
    """The table of rows whose ratios are to the row named `unit`."""
    headings = (
        *("who", "connections", f"x {unit}", "CPU ms", "server", "database"),
        *("per second", "p50 ms", "p99 ms", "MB a worker"),
    )
    return Table(headings, [_line(row) for row in rows])


def _line(row: Row) -> tuple[str, ...]:
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
