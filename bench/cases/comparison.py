"""`compare`: this service beside its peers, and what a country needs."""

from collections.abc import Sequence
from functools import cache
from math import ceil

from bench.clients import Population
from bench.figures import Figures, Row
from bench.measure import Case, measure_rounds
from bench.peers import bare_view, service, toolkit
from bench.report import Table
from bench.session import Session

BASELINE = bare_view.BARE_VIEW
# The baseline, by which everything is divided, runs at the beginning, in the middle and at the end.
CANDIDATES = (
    *(BASELINE, bare_view.FORM_READER, toolkit.STOCK, toolkit.FAST_HASHER),
    *(BASELINE, service.LOGIN, *service.OTHERS, BASELINE),
)

_COUNTRIES = (100_000, 1_000_000, 5_000_000, 20_000_000, 50_000_000)
# Each client logs in once an hour; in the busiest minutes three times as many come as on average.
_PEAK = 3
# Beyond this share of the highest throughput clients begin to wait for each other.
_BUSY_SHARE = 0.7


def run(
    session: Session,
    users: int = 1_000_000,
    rounds: int = 5,
    seconds: float = 3.0,
    only: Sequence[str] = ("",),
) -> list[Table]:
    """The service beside its peers; --only those whose name contains one of these words."""
    population = Population(users)
    server_of = cache(lambda start: start(session, population))  # each starts once
    cases = [
        Case(candidate.name, candidate, server_of(candidate.start), population, connections)
        for candidate in CANDIDATES
        if candidate is BASELINE or any(word in candidate.name for word in only)
        for connections in candidate.connections
    ]
    session.settle()
    rows = measure_rounds(cases, rounds, seconds)
    note = f"{users:,} system users, medians of {rounds} rounds of {seconds} s."
    # Of the rows of a login, the one with the most connections is the last.
    logins = [row.figures for row in rows if row.case == service.LOGIN.name]
    return [_table(rows, note), *map(sizing, logins[-1:])]


def _table(rows: Sequence[Row], note: str) -> Table:
    headings = (
        *("who", "connections", f"x {BASELINE.name}", "CPU ms", "server", "database"),
        *("per second", "p50 ms", "p99 ms", "MB a worker"),
    )
    lines = []
    for row in rows:
        of = row.figures
        cpu = (f"{ms:.3f}" for ms in (of.cpu_ms, of.server_cpu_ms, of.database_cpu_ms))
        latency = (f"{of.p50_ms:.1f}", f"{of.p99_ms:.1f}", f"{of.worker_mb:.0f}")
        name = (row.case, str(row.connections), f"{row.ratio:.2f}")
        lines.append((*name, *cpu, f"{of.per_second:.0f}", *latency))
    return Table("comparison", headings, lines, note)


def sizing(login: Figures) -> Table:
    """Cores for the service and for PostgreSQL, where a login costs that much."""

    def cores(per_second: float, cpu_ms: float) -> str:
        return f"{ceil(per_second * cpu_ms / 1000 / _BUSY_SHARE):,}"

    lines = []
    for clients in _COUNTRIES:
        mean, peak = clients / 3600, clients / 3600 * _PEAK
        needed = cores(peak, login.server_cpu_ms), cores(peak, login.database_cpu_ms)
        events = f"{clients * 24 / 1e6:,.1f}"
        lines.append((f"{clients:,}", f"{mean:,.0f}", f"{peak:,.0f}", *needed, events))
    headings = (
        *("clients", "logins a second", "at peak", "cores for the service"),
        *("cores for PostgreSQL", "million events a day"),
    )
    return Table("sizing", headings, lines, "From the figures above.")
