"""Keeps exported cells from being run as formulas by spreadsheets (OWASP, CSV injection). Pure.

A text that begins like a formula gets an apostrophe in front; reading removes it.
"""

import re

_FORMULA = re.compile(r"[=+\-@\t\r]")
_ESCAPED = re.compile(r"\A'(?=[=+\-@])")


def escape_formula(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """The text of a cell that `escape_formula` made; any other cell is unchanged."""
    return _ESCAPED.sub("", cell)
