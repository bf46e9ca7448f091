"""Keeps exported cells from being run as formulas by spreadsheets (OWASP, CSV injection). Pure.

A text that begins like a formula gets an apostrophe in front; reading removes it.
"""

import re

# Programs of East Asian languages read the wide forms of these characters as the usual ones.
_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(rf"[{_SIGNS}\t\r\n]")
_ESCAPED = re.compile(rf"\A'(?=[{_SIGNS}])")


def escape_formula(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """The text of a cell that `escape_formula` made; any other cell is unchanged."""
    return _ESCAPED.sub("", cell)
