"""The processes that write logins to one SQLite file, one after the other.

SQLite lets a writer that finds another one sleep and look again, for longer each time: of two
processes that write all the time, one can wait for a second. A lock of the file system wakes the
next one at once, and is released when its process ends.
"""

import fcntl
import os
from pathlib import Path
from typing import Any

from django.conf import settings


class Turns:
    """Used in a `with`, by one thread of each process. Other writers of the file ignore it."""

    def __init__(self) -> None:
        self._file: int | None = None

    def __enter__(self) -> None:
        if self._file is None:
            path = Path(settings.VAR_DIR) / "login-writers.lock"
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_error: Any) -> None:
        assert self._file is not None  # noqa: S101 - entered before
        fcntl.flock(self._file, fcntl.LOCK_UN)
