"""One set of counters for all worker processes, kept in files that each process maps (contract 6).

prometheus_client decides how it counts when it is first imported, so this comes before Django's
applications are loaded.
"""

import os
import re
from pathlib import Path

_FILE = re.compile(r".*_(\d+)\.db")


def share_counters(folder: Path) -> None:
    """Has the processes of this service count in `folder`.

    What processes left there that are no more is removed, so a restart begins at zero. While the
    service runs they stay: a counter never goes back because a worker has ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match and not _is_running(int(match[1])):
            file.unlink(missing_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, so it runs
    return True
