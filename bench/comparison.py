"""This service beside its peers: the table of docs/performance.md."""

from collections.abc import Callable, Sequence
from functools import cache

from bench import scenarios
from bench.clients import Population
from bench.measure import Case, Figures, Progress, Row, rounds, rows, silent
from bench.peers.toolkit_registry import FAST_HASHER
from bench.scenarios import Scenario
from bench.servers import Target
from bench.stage import Stage

UNIT = "bare Django view"
LOGIN = "login as taxpayer"
FEW, MANY = 16, 64
_STOCK = "django-oauth-toolkit, stock"
# Its hash alone takes a quarter of a second: how many clients there are makes no difference.
_STOCK_APPLICATIONS = 1_000

Planned = tuple[str, Callable[[], Target], Scenario, int]


def compare(
    stage: Stage,
    population: Population,
    *,
    count: int,
    seconds: float,
    only: Sequence[str] = (),
    progress: Progress = silent,
) -> list[Row]:
    """The medians of so many rounds. `only` keeps the cases that hold one of these words."""
    cases = [
        Case(name, start(), scenario, connections)
        for name, start, scenario, connections in _planned(stage, population)
        if name == UNIT or not only or any(word in name for word in only)
    ]
    stage.databases.settle()
    measured = rounds(cases, count=count, seconds=seconds, progress=progress)
    return rows(cases, measured)


def login(rows: Sequence[Row]) -> Figures | None:
    """The figures of a login as taxpayer under the heavier load, if it was measured."""
    return next((row.figures for row in reversed(rows) if row.case == LOGIN), None)


def charted(rows: Sequence[Row]) -> list[Row]:
    """The rows that fit into one chart: without the stock toolkit, a hundred times the others."""
    return [row for row in rows if row.case != _STOCK]


def _planned(stage: Stage, population: Population) -> list[Planned]:
    """All cases; a server is started by the first case that needs it."""
    bare, taxpayer = scenarios.bare(population), scenarios.taxpayer_login(population)
    users = population.taxpayers
    view = cache(stage.bare_view)
    fast = cache(lambda: stage.toolkit("fast", users, FAST_HASHER))
    ours = cache(lambda: stage.identity("es256", population))
    unit = [(UNIT, view, bare, FEW), (UNIT, view, bare, MANY)]
    # All is divided by the unit: it is measured at the beginning, in the middle and at the end.
    return [
        *unit,
        ("the same, reading the form", lambda: stage.bare_view(reads_form=True), bare, FEW),
        (
            _STOCK,
            lambda: stage.toolkit("stock", _STOCK_APPLICATIONS, ""),
            scenarios.toolkit_login(_STOCK_APPLICATIONS),
            FEW,
        ),
        ("django-oauth-toolkit, fast hasher", fast, scenarios.toolkit_login(users), FEW),
        ("django-oauth-toolkit, fast hasher", fast, scenarios.toolkit_login(users), MANY),
        *unit,
        (LOGIN, ours, taxpayer, FEW),
        (LOGIN, ours, taxpayer, MANY),
        ("login as intermediary", ours, scenarios.intermediary_login(population), FEW),
        ("refused: wrong secret", ours, scenarios.wrong_secret(population), FEW),
        ("refused: blocked", ours, scenarios.blocked(population), FEW),
        ("refused: hammering past its limit", ours, scenarios.hammering(population), FEW),
        (
            "login as taxpayer, RS256",
            lambda: stage.identity("rs256", population, SIGNING_ALGORITHM="RS256"),
            taxpayer,
            FEW,
        ),
        (
            "login as taxpayer, SQLite",
            lambda: stage.identity_on_sqlite(population),
            taxpayer,
            FEW,
        ),
        *unit,
    ]
