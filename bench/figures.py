"""What a run measured, and the arithmetic on it. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured, or the medians of several runs."""

    server_cpu_ms: float  # for one answer; so is the next
    database_cpu_ms: float
    per_second: float
    p50_ms: float
    p99_ms: float
    worker_mb: float  # resident memory of the larger worker

    @property
    def cpu_ms(self) -> float:
        return self.server_cpu_ms + self.database_cpu_ms


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of a case over all rounds; `ratio` is to the baseline of the same round."""

    case: str
    connections: int
    ratio: float
    figures: Figures


def rows(cases: Sequence[tuple[str, int]], rounds: Sequence[Sequence[Figures]]) -> list[Row]:
    """One row for each name and number of connections. The baseline is the name of the first case.

    `rounds` holds the figures of each round in the order of `cases`. A ratio is to the mean of the
    baseline's runs in the same round, at the same number of connections if it was measured there.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for index, case in enumerate(cases):
        groups.setdefault(case, []).append(index)
    baseline, default_connections = cases[0]
    table = []
    for (name, connections), indexes in groups.items():
        divisors = groups.get((baseline, connections)) or groups[baseline, default_connections]
        ratios = [
            figures[index].cpu_ms / statistics.mean(figures[i].cpu_ms for i in divisors)
            for figures in rounds
            for index in indexes
        ]
        runs = [figures[index] for figures in rounds for index in indexes]
        table.append(Row(name, connections, statistics.median(ratios), medians(runs)))
    return table


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    return Figures(*map(statistics.median, zip(*map(astuple, runs), strict=True)))


def percentile(seconds: Sequence[float], share: float) -> float:
    """The time that this share of the answers did not exceed, in milliseconds."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0
