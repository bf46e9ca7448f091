"""Files that only their owner can open: everything in `var/` (docs/security.md).

What it writes later is private by the umask that manage.py and deploy/gunicorn.conf.py set.
"""

import os
import stat
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

FOLDER_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(folder: Path) -> Path:
    """The folder, made if it is missing; only its owner can open it or what is in it.

    An existing one that others can open is closed to them, with what lies directly in it: files
    of an earlier version. Raises ImproperlyConfigured, with what to do, if it cannot be made or is
    not this service's own to close.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        if _is_open(folder.stat().st_mode):
            _refuse_shared(folder)
            folder.chmod(FOLDER_MODE)
        for entry in folder.iterdir():
            _close_to_others(entry)
    except OSError as error:
        raise ImproperlyConfigured(f"VAR_DIR: {folder} cannot be used: {error.strerror}.") from None
    return folder


def _refuse_shared(folder: Path) -> None:
    # To close /tmp or /var to everybody else would break the machine.
    state = folder.stat()
    is_shared = state.st_mode & stat.S_ISVTX or len(folder.resolve().parts) <= 2
    if is_shared or state.st_uid != os.geteuid():
        raise ImproperlyConfigured(
            f"VAR_DIR: other users can open {folder}, and it is not this service's own to close."
            f" Run as its owner, or name a folder inside it that does not exist yet, for example"
            f" VAR_DIR={folder / 'token-service'}: the service makes it, only for itself."
        )


def _close_to_others(path: Path) -> None:
    try:
        state = path.lstat()
        if state.st_uid == os.geteuid() and _is_open(state.st_mode):
            path.chmod(stat.S_IMODE(state.st_mode) & ~_OTHERS)
    except FileNotFoundError:
        pass  # another process has just removed it


def _is_open(mode: int) -> bool:
    return bool(mode & _OTHERS) and not stat.S_ISLNK(mode)
