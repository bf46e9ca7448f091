"""The address of the demo that runs on the data in `var/`, for other shells (contract 6). Pure.

The file is locked by the server for as long as one of its processes lives, however it ends: an
address that nobody holds the lock of is a former one.
"""

import fcntl
import os
import time
from pathlib import Path

FILE = "demo.address"
_TRIES, _PAUSE_SECONDS = 20, 0.05


def save_demo_address(folder: Path, address: str) -> None:
    """Keeps it until this process and all that it starts or becomes have ended.

    Where another demo runs on the same data, its address stays.
    """
    file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_TRIES):  # whoever reads it holds the lock for an instant
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            os.ftruncate(file, 0)
            os.write(file, address.encode())
            os.set_inheritable(file, True)  # never closed: the lock goes with the last process
            return
    os.close(file)


def demo_address(folder: Path) -> str | None:
    """The address of the demo that runs now; None if there is none."""
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or None
    except (OSError, ValueError):
        pass
    return None
