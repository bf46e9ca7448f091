"""What each test and each fixture costs: `make costs` writes a table, the dearest first.

Seconds depend on what else the machine does; the CPU time of this process, and of all that it
started, hardly does. What still runs is counted only for tests that start programs: to look it up
takes longer than most of the others. A fixture of each test belongs to its test.
"""

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_LAST = Path(__file__).parents[1] / "var" / "costs.tsv"
_HEADER = "cpu\tseconds\ttimes\tkind\tname\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write what each test and fixture costs")
    parser.addoption(
        "--cheaper-than",
        metavar="SECONDS",
        type=float,
        help="leave out tests that cost more CPU time in the last `make test` (var/costs.tsv)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.costs:
        config.pluginmanager.register(_Costs(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    limit = config.option.cheaper_than
    if limit is None:
        return
    dear = {name for name, cpu in of_last_run().items() if cpu > limit}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in dear])
    items[:] = [item for item in items if item.nodeid not in dear]


def of_last_run() -> dict[str, float]:
    """The CPU time of each test in the last `make test`."""
    lines = _LAST.read_text().splitlines()[1:] if _LAST.exists() else []
    rows = (line.split("\t") for line in lines)
    return {name: float(cpu) for cpu, _, _, kind, name in rows if kind == "test"}


class _Costs:
    def __init__(self, config: pytest.Config) -> None:
        self._file = Path(config.option.costs).absolute()
        self._is_worker = hasattr(config, "workerinput")
        self._sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        if not self._is_worker:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        starts_programs = item.get_closest_marker("processes") is not None
        yield from self._measured(("test", item.nodeid), starts_programs)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        if fixturedef.scope in ("function", "class"):
            return (yield)
        name = f"{fixturedef.baseid}::{fixturedef.argname}"
        return (yield from self._measured((f"{fixturedef.scope} fixture", name), True))

    def _measured(self, key: tuple[str, str], with_running: bool) -> Iterator[Any]:
        cpu, started = _cpu_seconds(with_running), time.perf_counter()
        result = yield
        spent = (_cpu_seconds(with_running) - cpu, time.perf_counter() - started, 1)
        self._sums[key] = [a + b for a, b in zip(self._sums[key], spent, strict=True)]
        return result

    @pytest.hookimpl(trylast=True)  # the workers have ended when their controller does
    def pytest_unconfigure(self) -> None:
        with self._file.open("a") as file:  # of all workers, one after the other
            for (kind, name), (cpu, seconds, times) in self._sums.items():
                file.write(f"{cpu:.2f}\t{seconds:.2f}\t{times:.0f}\t{kind}\t{name}\n")
        if not self._is_worker:
            rows = self._file.read_text().splitlines(keepends=True)
            rows.sort(key=lambda row: float(row.partition("\t")[0]), reverse=True)
            self._file.write_text(_HEADER + "".join(rows))


def _cpu_seconds(with_running: bool) -> float:
    """Of this process, of those that it started, and of theirs, also while they run."""
    own, ended = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    running = sum(map(_tree, _children("self"))) if with_running else 0.0
    return sum(u.ru_utime + u.ru_stime for u in (own, ended)) + running


def _tree(pid: str) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
    # utime, stime, and the same of its children that have ended: proc(5), 14 to 17
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(_tree, _children(pid)))


def _children(pid: str) -> list[str]:
    found: list[str] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += (task / "children").read_text().split()
    except OSError:
        pass
    return found
