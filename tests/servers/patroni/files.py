"""The files of `deploy/patroni/`, with the ports, folders and passwords of a test."""

import re
import shutil
import subprocess
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
# Where docs/high-availability.md installs Patroni, and which one it must be.
PATRONI = Path("/opt/patroni/bin")
_OLDEST = (4, 0)


def patroni(name: str) -> str:
    """Where Patroni's program is. Raises NotAvailable where it is missing, or an older one.

    Up to 3.0.2, which Debian 12 has, a leader that was silent took the lead from its successor,
    and so the records of tokens were lost: this drill found it.
    """
    path = PATRONI / name
    if not path.exists():
        raise NotAvailable(f"no {path} here (docs/high-availability.md has the commands)")
    text = subprocess.run(
        [str(PATRONI / "patroni"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    if tuple(int(part) for part in text.split()[-1].split(".")[:2]) < _OLDEST:
        raise NotAvailable(f"{text.strip()} is too old: a former leader can take the lead back")
    return str(path)


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
