"""Tables for a terminal and for docs/performance.md, and the progress of a measurement."""

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Table:
    """The first column holds names, the others figures; `note` says how they were measured."""

    name: str  # of its place in the page
    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    note: str = ""
    problem: str = ""  # a limit that was exceeded
    shortened: int | None = None  # so many lines are written into the page, the first of them

    def as_markdown(self) -> str:
        """In columns of equal width: for a terminal too."""
        widths = [max(map(len, column)) for column in zip(self.headings, *self.lines, strict=True)]
        rule = ("-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:]))
        return "\n".join(
            f"| {' | '.join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])} |"
            for line in (self.headings, rule, *self.lines)
        )


def write(table: Table, page: Path = PAGE) -> None:
    """Puts the table between `<!-- NAME -->` and `<!-- /NAME -->` of the page.

    Raises LookupError if the page has no such place.
    """
    text = page.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {table.name} -->\n).*?(<!-- /{table.name} -->)", re.DOTALL)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    shown = replace(table, lines=table.lines[: table.shortened]).as_markdown()
    block = f"\n{shown}\n\n{table.note} Measured on {today}.\n\n"
    text, count = place.subn(lambda match: match[1] + block + match[2], text)
    if count != 1:
        raise LookupError(f"{page} has no place for the table {table.name!r}")
    page.write_text(text, encoding="utf-8")


def progress(text: str) -> None:
    """Prints the line with the seconds since the start, to standard error."""
    print(f"{time.monotonic() - _STARTED:6.0f} s  {text}", file=sys.stderr, flush=True)
