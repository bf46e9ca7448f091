"""CPU time and memory of a server, read from `/proc`: all its processes, also those that ended."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes has used so far."""

    cpu_seconds: float
    resident_bytes: tuple[int, ...]  # of each process, the greatest first


def usage(root: int) -> Usage:
    """The process `root` and all its descendants.

    A descendant that ended and was awaited is in the time of its parent's children; none is lost.
    """
    ticks, resident = 0, []
    for pid in tree(root):
        fields = _stat(pid)
        if fields is None:
            continue
        # utime, stime, cutime, cstime, and rss: proc(5), counted from the field after the name.
        ticks += sum(int(fields[i]) for i in (11, 12, 13, 14))
        resident.append(int(fields[21]) * _PAGE)
    return Usage(ticks / _TICKS_PER_SECOND, tuple(sorted(resident, reverse=True)))


def own_cpu_seconds(pid: int) -> float:
    """Of this process alone; 0 if there is none."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND if fields else 0.0


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
