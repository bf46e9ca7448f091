"""CPU time and memory of a server, read from `/proc`: all its processes, also those that ended."""

import os
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


# Counted from the field after the name, as in proc(5).
_UTIME, _STIME, _CUTIME, _CSTIME, _RSS = 11, 12, 13, 14, 21


def cpu_seconds(root: int) -> float:
    """What the process `root` and all its descendants have used so far.

    A descendant that ended and was awaited is in the time of its parent's children; none is lost.
    """
    all_fields = [fields for pid in tree(root) if (fields := _stat(pid)) is not None]
    times = (_UTIME, _STIME, _CUTIME, _CSTIME)
    return sum(int(fields[i]) for fields in all_fields for i in times) / _TICKS_PER_SECOND


def busiest(root: int, count: int) -> list[int]:
    """The descendants of `root` that have worked most: the workers of a server under load."""
    return sorted(tree(root)[1:], key=own_cpu_seconds, reverse=True)[:count]


def resident_bytes(pid: int) -> int:
    """Memory of this process, with all that it shares; 0 if there is none."""
    fields = _stat(pid)
    return int(fields[_RSS]) * _PAGE if fields else 0


def own_cpu_seconds(pid: int) -> float:
    """Of this process alone; 0 if there is none."""
    fields = _stat(pid)
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_SECOND if fields else 0.0


def proportional_bytes(pid: int) -> int:
    """Memory of this process, what it shares divided by those who share it; 0 if not told."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def tree(root: int) -> list[int]:
    """The process ids of `root` and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting.extend(children.get(pid, ()))
    return found


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
