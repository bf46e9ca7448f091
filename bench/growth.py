"""Does a login cost more when the registry or the record of logins has grown?"""

from collections.abc import Sequence

from bench import scenarios
from bench.clients import Population
from bench.history import add_events
from bench.measure import Case, Progress, Row, rounds, rows, silent
from bench.report import Table
from bench.stage import Stage


def with_users(
    stage: Stage,
    sizes: Sequence[int],
    *,
    count: int,
    seconds: float,
    progress: Progress = silent,
) -> list[Row]:
    """One row for each number of system users, none of whom has logged in yet."""
    cases = []
    for size in sizes:
        population = Population(size)
        target = stage.identity(f"users_{size}", population)
        name = f"{size:,} system users"
        cases.append(Case(name, target, scenarios.taxpayer_login(population)))
    return _measured(stage, cases, count, seconds, progress)


def with_events(
    stage: Stage,
    events: Sequence[int],
    population: Population,
    *,
    count: int,
    seconds: float,
    progress: Progress = silent,
) -> list[Row]:
    """One row for each number of recorded logins, all of this month."""
    cases = []
    template = stage.databases.registry(population)
    for number in events:
        url = stage.databases.copy(template, f"events_{number}")
        progress(f"recording {number:,} logins")
        size = add_events(url, number, population.taxpayers)
        progress(f"each takes {size:.0f} bytes, indexes included")
        target = stage.identity_on(url, f"events_{number}")
        name = f"{number:,} recorded logins"
        cases.append(Case(name, target, scenarios.taxpayer_login(population)))
    return _measured(stage, cases, count, seconds, progress)


def _measured(
    stage: Stage,
    cases: list[Case],
    count: int,
    seconds: float,
    progress: Progress,
) -> list[Row]:
    stage.databases.settle()
    measured = rounds(cases, count=count, seconds=seconds, progress=progress)
    return rows(cases, measured)


def table(grown: Sequence[Row]) -> Table:
    """Each row beside the first one."""
    first = grown[0].figures
    return Table(
        ("with", "CPU ms", "x the first", "p50 ms", "p99 ms", "x the first", "per second"),
        [
            (
                row.case,
                f"{row.figures.cpu_ms:.3f}",
                f"{row.ratio:.2f}",
                f"{row.figures.p50_ms:.1f}",
                f"{row.figures.p99_ms:.1f}",
                f"{row.figures.p99_ms / first.p99_ms:.2f}",
                f"{row.figures.per_second:.0f}",
            )
            for row in grown
        ],
    )
