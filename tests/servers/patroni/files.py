"""The files of `deploy/patroni/`, with the ports, folders and passwords of a test."""

import re
import shutil
from pathlib import Path

from tests.servers.processes import CHECKOUT, NotAvailable

FOLDER = CHECKOUT / "deploy" / "patroni"
HOST = "127.0.0.1"
# Patroni and its database run with nothing of the developer's shell.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}


def program(name: str, package: str) -> str:
    """Where the program is. Raises NotAvailable, with the package of Debian that has it."""
    found = shutil.which(name, path=ENVIRONMENT["PATH"])
    if found is None:
        raise NotAvailable(f"no {name} here (Debian: apt install {package})")
    return found


def changed(name: str, *changes: tuple[str, str]) -> str:
    """The file with its `changes`: a pattern and what replaces it.

    Each must find what it replaces, so that the file cannot change unnoticed.
    """
    text = (FOLDER / name).read_text(encoding="utf-8")
    for pattern, replacement in changes:
        text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert found, f"deploy/patroni/{name} has no {pattern}"
    return text


def written(path: Path, text: str) -> Path:
    """The file, readable for every user of the machine: its program may run as another one."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path
