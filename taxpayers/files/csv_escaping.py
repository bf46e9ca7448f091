"""A cell of an exported table, which no spreadsheet takes for a formula. Pure.

A text that begins like a formula gets an apostrophe in front; reading takes it away again (OWASP,
CSV injection).
"""

import re

_FORMULA = re.compile(r"[=+\-@\t\r]")
_ESCAPED = re.compile(r"'(?=[=+\-@])")


def escaped(text: str) -> str:
    """The text as a cell."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescaped(cell: str) -> str:
    """The text of a cell that `escaped` made; any other as it is."""
    return _ESCAPED.sub("", cell, count=1) if _ESCAPED.match(cell) else cell
