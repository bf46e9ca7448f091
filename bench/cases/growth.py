"""`growth`: whether a login costs more in a larger registry, or with more login events."""

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter

from bench import targets
from bench.clients import Population
from bench.figures import Rounds
from bench.login_events import add_login_events
from bench.measure import Case, measure_rounds, meet_clients
from bench.peers import service
from bench.report import Table
from bench.session import Session
from bench.targets import Target

_cpu, _p99 = attrgetter("cpu_ms"), attrgetter("p99_ms")


def run(
    session: Session,
    users: int = 1_000_000,
    rounds: int = 5,
    seconds: float = 4.0,
    sizes: Sequence[int] = (1_000, 1_000_000, 10_000_000),
    events: Sequence[int] = (0, 10_000_000, 50_000_000),
) -> list[Table]:
    """The cost of a login with more system users (--sizes), and with more login events."""
    note = f"Medians of {rounds} rounds of {seconds} s."
    cases = [_case(session, f"{size:,} system users", size, events=0) for size in sizes]
    by_users = _measure(session, cases, rounds, seconds)
    session.stop_servers()
    cases = [_case(session, f"{count:,} recorded logins", users, count) for count in events]
    by_logins = _measure(session, cases, rounds, seconds)
    return [
        _table("growth by users", by_users, note),
        _table("growth by logins", by_logins, f"{users:,} system users. {note}"),
        targets.table("growth targets", [*_targets(by_users, 1.08), *_targets(by_logins)], note),
    ]


def _case(session: Session, name: str, users: int, events: int) -> Case:
    """With so many events of the present month, into which the next login is written too."""
    population, database = Population(users), f"growth_{users}_{events}"
    url = session.copy_of_registry(population, database)
    if events:
        since = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        add_login_events(url, events, users, since)
    server = service.start_on(session, database, url)
    return Case(name, service.LOGIN, server, population)


def _measure(session: Session, cases: list[Case], rounds: int, seconds: float) -> Rounds:
    meet_clients(cases)
    session.settle()
    return measure_rounds(cases, rounds, seconds)


def _table(name: str, measured: Rounds, note: str) -> Table:
    headings = ("with", "CPU ms", "x the first", "p50 ms", "p99 ms", "x the first", "per second")
    first, lines = measured.cases[0][0], []
    for case in measured.cases:
        of = measured.medians(*case)
        cpu, p99 = (f"{measured.ratio(*case, first, figure):.2f}" for figure in (_cpu, _p99))
        cells = (f"{of.cpu_ms:.3f}", cpu, f"{of.p50_ms:.1f}", f"{of.p99_ms:.1f}", p99)
        lines.append((case[0], *cells, f"{of.per_second:.0f}"))
    return Table(name, headings, lines, note)


def _targets(measured: Rounds, must_cpu: float = 1.1) -> list[tuple[Target, float | None]]:
    first, last = measured.cases[0], measured.cases[-1]
    return [
        (
            Target(f"{name} with {last[0]}, of that with {first[0]}", must, 1.05),
            measured.ratio(*last, first[0], figure),
        )
        for name, figure, must in (("CPU time", _cpu, must_cpu), ("p99", _p99, 1.1))
    ]
