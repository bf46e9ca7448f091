"""One run of one scenario against one server, and several rounds of many."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import load, tokens
from bench.load import Load, percentile
from bench.processes import busiest, cpu_seconds, resident_bytes
from bench.scenarios import Scenario
from bench.servers import WORKERS, Target

_WARM_UP_SECONDS = 0.7

Progress = Callable[[str], object]


def silent(text: str) -> None:
    """A `Progress` that nobody sees."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario against a server at one level of load: one row of the table."""

    name: str
    target: Target
    scenario: Scenario
    connections: int = 16


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured."""

    server_cpu_ms: float  # per answer, as all figures of CPU
    database_cpu_ms: float
    per_second: float
    p50_ms: float
    p99_ms: float
    worker_mb: float  # resident memory of the greater worker
    answers: int

    @property
    def cpu_ms(self) -> float:
        return self.server_cpu_ms + self.database_cpu_ms


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of a case over all rounds; `ratio` is to the unit of the same round."""

    case: str
    connections: int
    ratio: float
    figures: Figures


def measure(case: Case, *, seconds: float, seed: int, rate: float | None = None) -> Figures:
    """Raises WrongAnswer if a single answer was not the expected one."""
    target = case.target
    warm = _load(case, case.scenario.requests(2_000, seed + 1_000_000), _WARM_UP_SECONDS)
    speed = warm.answered / warm.seconds
    # Enough for the whole run, so that no client comes twice but by chance.
    count = int((rate or speed * 1.5) * seconds) + 1_000
    requests = case.scenario.requests(count, seed)
    server, database = _cpu(target.pid), _cpu(target.database_pid)
    outcome = _load(case, requests, seconds, rate)
    server, database = _cpu(target.pid) - server, _cpu(target.database_pid) - database
    if case.scenario.issues_token:
        tokens.verify(outcome.samples, target.port)
    return Figures(
        server_cpu_ms=server * 1000 / outcome.answered,
        database_cpu_ms=database * 1000 / outcome.answered,
        per_second=outcome.answered / outcome.seconds,
        p50_ms=percentile(outcome.latencies, 0.50),
        p99_ms=percentile(outcome.latencies, 0.99),
        worker_mb=max(map(resident_bytes, busiest(target.pid, WORKERS))) / 2**20,
        answers=outcome.answered,
    )


def rounds(
    cases: Sequence[Case],
    *,
    count: int,
    seconds: float,
    progress: Progress = silent,
) -> list[dict[int, Figures]]:
    """Every case once in each round, so that a slow minute of the machine strikes all alike."""
    measured: list[dict[int, Figures]] = []
    for number in range(count):
        figures = {}
        # Every other round backwards: nobody always comes after the same neighbour.
        for index, case in list(enumerate(cases))[:: -1 if number % 2 else 1]:
            figures[index] = measure(
                case, seconds=seconds, seed=time.time_ns() % 1_000_000_007 + index
            )
            progress(
                f"round {number + 1}/{count} {case.name} x{case.connections}:"
                f" {figures[index].cpu_ms:.3f} ms"
            )
        measured.append(figures)
    return measured


def rows(cases: Sequence[Case], measured: Sequence[dict[int, Figures]]) -> list[Row]:
    """The table, cases of one name and load in one row. The first case's name is the unit's.

    The unit of a row is what the unit cost on average in the same round, at the same load if it
    was measured there.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for index, case in enumerate(cases):
        groups.setdefault((case.name, case.connections), []).append(index)
    (unit_name, unit_load), *_ = groups
    table = []
    for (name, connections), indexes in groups.items():
        units = groups.get((unit_name, connections)) or groups[unit_name, unit_load]
        ratios = [
            figures[index].cpu_ms / statistics.mean(figures[unit].cpu_ms for unit in units)
            for figures in measured
            for index in indexes
        ]
        runs = [figures[index] for figures in measured for index in indexes]
        table.append(Row(name, connections, statistics.median(ratios), _medians(runs)))
    return table


def _medians(runs: Sequence[Figures]) -> Figures:
    def median(value: Callable[[Figures], float]) -> float:
        return statistics.median(value(run) for run in runs)

    return Figures(
        server_cpu_ms=median(lambda run: run.server_cpu_ms),
        database_cpu_ms=median(lambda run: run.database_cpu_ms),
        per_second=median(lambda run: run.per_second),
        p50_ms=median(lambda run: run.p50_ms),
        p99_ms=median(lambda run: run.p99_ms),
        worker_mb=median(lambda run: run.worker_mb),
        answers=sum(run.answers for run in runs),
    )


def _load(
    case: Case, requests: Sequence[bytes], seconds: float, rate: float | None = None
) -> load.Outcome:
    outcome = load.run(
        Load(case.target.port, requests, case.connections, seconds, case.scenario.expected, rate)
    )
    outcome.raise_if_wrong(case.name)
    return outcome


def _cpu(pid: int | None) -> float:
    return cpu_seconds(pid) if pid is not None else 0.0
