"""What a run measured, and the arithmetic on it. Pure."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured, or the medians of several runs."""

    server_cpu_ms: float  # for one answer; so is the next
    database_cpu_ms: float
    per_second: float
    p50_ms: float
    p99_ms: float

    @property
    def cpu_ms(self) -> float:
        return self.server_cpu_ms + self.database_cpu_ms


def cpu_ms(of: Figures) -> float:
    """The default of what is compared."""
    return of.cpu_ms


@dataclass(frozen=True, slots=True)
class Rounds:
    """The figures of each round, in the order of `cases`: name and number of connections.

    A case that comes several times in a round has the mean of its figures there.
    """

    cases: Sequence[tuple[str, int]]
    measured: Sequence[Sequence[Figures]]

    def medians(self, name: str, connections: int) -> Figures:
        """The median of each figure."""
        runs = [run for runs in self._runs(name, connections) for run in runs]
        return Figures(*map(statistics.median, zip(*map(astuple, runs), strict=True)))

    def ratio(
        self,
        name: str,
        connections: int,
        base: str,
        figure: Callable[[Figures], float] = cpu_ms,
    ) -> float | None:
        """The median of the ratios to `base` in the same round; None if one was not measured.

        Where the base was not measured with so many connections, its first number of them counts.
        """
        of_base = [count for case, count in self.cases if case == base]
        if not of_base or (name, connections) not in self.cases:
            return None
        base_connections = connections if connections in of_base else of_base[0]
        pairs = zip(self._runs(name, connections), self._runs(base, base_connections), strict=True)
        return statistics.median(
            statistics.mean(map(figure, runs)) / statistics.mean(map(figure, base_runs))
            for runs, base_runs in pairs
        )

    def _runs(self, name: str, connections: int) -> list[list[Figures]]:
        """Those of this case, for each round."""
        case = (name, connections)
        return [
            [figures for key, figures in zip(self.cases, of_round, strict=True) if key == case]
            for of_round in self.measured
        ]


def percentile(seconds: Sequence[float], share: float) -> float:
    """The time that this share of the answers did not exceed, in milliseconds."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0
