"""CPU time and memory of a server and all its processes, from `/proc` (proc(5))."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DATA_FILES = (".mdb",)  # of LMDB, which maps what it stores
# Fields of /proc/PID/stat, counted from the one after the name.
_PARENT, _UTIME, _STIME, _CUTIME, _CSTIME, _RSS = 1, 11, 12, 13, 14, 21


def cpu_seconds(root: int) -> float:
    """What the process and all its descendants have used so far.

    Descendants that ended are counted too: their time is in that of their parent's children.
    """
    return sum(_seconds(pid, _UTIME, _STIME, _CUTIME, _CSTIME) for pid in process_tree(root))


def exact_cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of these processes to the nanosecond: for a few requests.

    Without what has ended, and without descendants that are not named.
    """
    nanoseconds = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9


def busiest(root: int, count: int) -> list[int]:
    """The descendants that have worked most: the workers of a server under load."""
    descendants = process_tree(root)[1:]
    return sorted(descendants, key=lambda pid: _seconds(pid, _UTIME, _STIME), reverse=True)[:count]


def resident_bytes(pid: int) -> int:
    """Memory of this process, with all that it shares; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[_RSS]) * _PAGE_BYTES if fields else 0


def private_bytes(pid: int) -> int:
    """Memory that this process shares with no other. Mapped data files belong to the disk cache."""
    total, is_data = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            is_data = len(values) > 4 and values[4].endswith(_DATA_FILES)
        elif name in ("Private_Clean:", "Private_Dirty:") and not is_data:
            total += int(values[0]) * 1024
    return total


def process_tree(root: int) -> list[int]:
    """The ids of the process and all its descendants, its own first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows meanwhile
        found += children.get(pid, [])
    return found


def _seconds(pid: int, *fields: int) -> float:
    stat = _stat(pid)
    return sum(int(stat[i]) for i in fields) / _TICKS_PER_SECOND if stat else 0.0


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
