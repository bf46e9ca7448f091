"""Puts tables into docs/performance.md, between the marks that the page has for them."""

import re
from datetime import UTC, datetime
from pathlib import Path

from bench.report import Table
from tests.support.servers import CHECKOUT

PAGE = CHECKOUT / "docs" / "performance.md"


def write(name: str, table: Table, *, about: str, page: Path = PAGE) -> None:
    """Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`.

    `about` says in one line how it was measured. Raises LookupError if the page has no such marks.
    """
    text = page.read_text(encoding="utf-8")
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    block = f"\n{table.as_markdown()}\n\n{about} Measured on {today}.\n\n"
    text, count = marked.subn(lambda found: found[1] + block + found[2], text)
    if count != 1:
        raise LookupError(f"{page} has no place for {name}")
    page.write_text(text, encoding="utf-8")
