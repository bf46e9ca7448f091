"""Who could open the files that a program has written."""

import stat
from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What others than the owner could open, in the folder or below, with its mode."""
    paths = [folder, *folder.rglob("*")]
    found = [path for path in paths if not path.is_symlink() and mode(path) & 0o077]
    return [f"{path.relative_to(folder)} {mode(path):o}" for path in found]


def without_umask(*command: str) -> list[str]:
    return ["/bin/sh", "-c", 'umask 0; exec "$@"', "sh", *command]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}
