"""`deploy/identity.env` as systemd reads it, and with every setting that it has as a comment."""

import re
from pathlib import Path

from tests.servers.processes import CHECKOUT

FILE = CHECKOUT / "deploy" / "identity.env"
_LINE = re.compile(r"^(#?)([A-Z][A-Z_]*)=(.*)$", re.MULTILINE)


def assignments(path: Path = FILE, *, with_comments: bool = False) -> dict[str, str]:
    """The value of each name; also of those that are commented out, if asked for."""
    return {
        name: value[1:-1] if value.startswith("'") else value
        for comment, name, value in _LINE.findall(path.read_text(encoding="utf-8"))
        if with_comments or not comment
    }


def written(path: Path, replacements: dict[str, str]) -> Path:
    """The file as an operator leaves it: with these lines in place of those of the same name."""
    text = FILE.read_text(encoding="utf-8")
    for name, value in replacements.items():
        text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        assert count == 1, f"{FILE.name} does not set {name}"
    path.write_text(text, encoding="utf-8")
    return path
