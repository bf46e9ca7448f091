"""How long do clients wait when the service is busy but not overrun?"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench import scenarios
from bench.clients import Population
from bench.measure import Case, Progress, measure, silent
from bench.report import Table
from bench.stage import Stage

SHARE = 0.7
_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Waiting:
    """One round: the greatest throughput, and the latency at `SHARE` of it."""

    greatest_per_second: float
    p50_ms: float
    p99_ms: float


def under_load(
    stage: Stage,
    population: Population,
    *,
    count: int,
    seconds: float,
    progress: Progress = silent,
) -> list[Waiting]:
    """Rounds of a closed loop, which finds the limit, and an open one at a fixed rate below it.

    In the open loop clients come at random moments whatever the server does, and what counts is
    the time since a login was due, so that a stall is seen by all who came during it.
    """
    target = stage.identity("latency", population)
    case = Case("latency", target, scenarios.taxpayer_login(population), _CONNECTIONS)
    stage.databases.settle()
    found = []
    for number in range(count):
        greatest = measure(case, seconds=seconds, seed=2 * number).per_second
        paced = measure(case, seconds=seconds, seed=2 * number + 1, rate=greatest * SHARE)
        found.append(Waiting(greatest, paced.p50_ms, paced.p99_ms))
        progress(f"at {greatest * SHARE:.0f}/s: p50 {paced.p50_ms:.1f}, p99 {paced.p99_ms:.1f} ms")
    return found


def table(found: Sequence[Waiting]) -> Table:
    """The medians in one line."""
    greatest = statistics.median(round_.greatest_per_second for round_ in found)
    p50 = statistics.median(round_.p50_ms for round_ in found)
    p99 = statistics.median(round_.p99_ms for round_ in found)
    ratio = statistics.median(round_.p99_ms / round_.p50_ms for round_ in found)
    return Table(
        ("greatest per second", f"at {SHARE:.0%} of it: p50 ms", "p99 ms", "p99 / p50"),
        [(f"{greatest:.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{ratio:.1f}")],
    )
