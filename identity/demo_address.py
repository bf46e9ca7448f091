"""The address of the demo that runs on the data in `var/`, for other shells (contract 6). Pure.

The server locks the file as long as one of its processes runs, however it ends. If the file is not
locked, its address is out of date.
"""

import fcntl
import os
import time
from pathlib import Path

_FILE = "demo.address"
_TRIES, _PAUSE_SECONDS = 20, 0.05


def save_demo_address(folder: Path, address: str) -> None:
    """Valid until this process, and every process that it starts or becomes, has ended.

    If another demo runs on the same data, its address stays.
    """
    file = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_TRIES):  # a reader holds the lock for an instant
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            os.ftruncate(file, 0)
            os.write(file, address.encode())
            os.set_inheritable(file, True)  # never closed: the last process releases the lock
            return
    os.close(file)


def demo_address(folder: Path) -> str | None:
    """The address of the demo that runs now; None if there is none."""
    try:
        with (folder / _FILE).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or None
    except (OSError, ValueError):
        pass
    return None
