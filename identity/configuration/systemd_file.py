"""Runs a program with the settings of a file, read as systemd reads an EnvironmentFile.

A shell would take `&`, `$` and a blank in a value for its own, and a command would then work on
another database. `deploy/manage` calls it before anything else is loaded: standard library only.
"""

import os
import re
import sys
from pathlib import Path

# A value in systemd.exec(5): pieces in single or double quotes, or neither.
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<plain>(?:\\.|[^'"\\])+)""", re.DOTALL
)
_ESCAPED_IN_DOUBLE = re.compile(r'\\([\\"`$])')
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def assignments(text: str) -> dict[str, str]:
    """The values by name. Raises ValueError for a line that is none, with its number."""
    found = {}
    # A line that ends with a backslash goes on in the next one.
    for number, line in enumerate(re.sub(r"(?<!\\)\\\n", "\0", text).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        match = _ASSIGNMENT.fullmatch(line.replace("\0", ""))
        value = _value(match[2].strip()) if match else None
        if match is None or value is None:  # what it holds may be secret
            raise ValueError(f"line {number} is not NAME=VALUE, or lacks a quotation mark.")
        found[match[1]] = value
    return found


def _value(text: str) -> str | None:
    value, position = "", 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            return None
        if piece["single"] is not None:
            value += piece["single"]
        elif piece["double"] is not None:
            value += _ESCAPED_IN_DOUBLE.sub(r"\1", piece["double"])
        else:
            value += re.sub(r"\\(.)", r"\1", piece["plain"])
        position = piece.end()
    return value


def main(path: str, *program: str) -> None:
    """Become the program, with these settings over those of this process."""
    try:
        given = assignments(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        sys.exit(f"Cannot read {path}: {fault}")
    # Every command is served where the staff pages are; those of accounts need them.
    environment = {"SERVE": "staff", **os.environ, **given}
    os.execve(sys.executable, [sys.executable, *program], environment)  # noqa: S606 - no shell


if __name__ == "__main__":
    main(*sys.argv[1:])
