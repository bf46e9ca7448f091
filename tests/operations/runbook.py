"""The commands of `docs/operations.md`, section by section, for tests that run them."""

import re
from pathlib import Path
from textwrap import dedent

from tests.servers.processes import CHECKOUT

DOCUMENT = CHECKOUT / "docs" / "operations.md"


def blocks_of(heading: str, language: str = "sh", *, document: Path = DOCUMENT) -> list[str]:
    """The blocks of commands below this heading, up to the next one of its level or above."""
    text = document.read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.MULTILINE)
    assert found, f"{document.name} has no section {heading!r}"
    section = re.split(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], flags=re.MULTILINE)[0]
    blocks = re.findall(rf"^ *```{language}\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    return [dedent(block) for block in blocks]


def replaced(text: str, replacements: dict[str, str]) -> str:
    """The commands with the names of a test; each name must be in them."""
    for old, new in replacements.items():
        assert old in text, f"the commands have no {old}"
        text = text.replace(old, new)
    return text
