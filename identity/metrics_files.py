"""One set of counters for all worker processes, in files that each process maps (contract 6).

prometheus_client decides how it counts when it is first imported: call this before Django loads its
applications.
"""

import os
import re
from pathlib import Path

from identity.private_files import FOLDER_MODE

_COUNTER_FILE = re.compile(r".*_(\d+)\.db")


def share_counters(folder: Path) -> None:
    """Make the processes of this service count in `folder`.

    Removes the files of processes that have ended, so that a restart begins at zero. It is called
    only at the start: a counter never decreases because a worker has ended.
    """
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    for file in folder.iterdir():
        match = _COUNTER_FILE.fullmatch(file.name)
        if match and not is_running(int(match[1])):
            file.unlink(missing_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def is_running(pid: int) -> bool:
    """Whether there is such a process, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it belongs to another user, so it is running
    return True
