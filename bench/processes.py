"""CPU time and memory of a server and all its processes, from `/proc` (proc(5))."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat, counted from the one after the name.
_PARENT, _UTIME, _STIME, _CUTIME, _CSTIME, _RSS = 1, 11, 12, 13, 14, 21


def cpu_seconds(root: int) -> float:
    """What the process and all its descendants have used so far.

    Descendants that ended are counted too: their time is in that of their parent's children.
    """
    return sum(_seconds(pid, _UTIME, _STIME, _CUTIME, _CSTIME) for pid in process_tree(root))


def busiest(root: int, count: int) -> list[int]:
    """The descendants that have worked most: the workers of a server under load."""
    descendants = process_tree(root)[1:]
    return sorted(descendants, key=lambda pid: _seconds(pid, _UTIME, _STIME), reverse=True)[:count]


def resident_bytes(pid: int) -> int:
    """Memory of this process, with all that it shares; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[_RSS]) * _PAGE_BYTES if fields else 0


def proportional_bytes(pid: int) -> int:
    """Memory of this process; what it shares is divided by the number of those that share it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


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
