"""`growth`: whether a login costs more in a larger registry, or with more login events."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench.clients import Population
from bench.login_events import add_login_events
from bench.measure import Case, measure_rounds
from bench.peers import service
from bench.report import Table
from bench.session import Session


def run(
    session: Session,
    users: int = 1_000_000,
    rounds: int = 5,
    seconds: float = 4.0,
    sizes: Sequence[int] = (1_000, 100_000, 1_000_000),
    events: Sequence[int] = (0, 1_000_000, 10_000_000),
) -> list[Table]:
    """The cost of a login with more system users (--sizes), and with more login events."""
    note = f"Medians of {rounds} rounds of {seconds} s."
    cases = [_case(session, f"{size:,} system users", size, events=0) for size in sizes]
    by_users = _measure(session, "growth by users", cases, rounds, seconds, note)
    session.stop_servers()
    cases = [_case(session, f"{count:,} recorded logins", users, count) for count in events]
    note = f"{users:,} users. {note}"
    return [by_users, _measure(session, "growth by logins", cases, rounds, seconds, note)]


def _case(session: Session, name: str, users: int, events: int) -> Case:
    """With so many events of the present month, into which the next login is written too."""
    population, database = Population(users), f"growth_{users}_{events}"
    url = session.copy_of_registry(population, database)
    if events:
        since = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        add_login_events(url, events, users, since)
    server = service.start_on(session, database, url)
    return Case(name, service.LOGIN, server, population)


def _measure(
    session: Session, name: str, cases: list[Case], rounds: int, seconds: float, note: str
) -> Table:
    session.settle()
    rows = measure_rounds(cases, rounds, seconds)
    first_p99 = rows[0].figures.p99_ms
    headings = ("with", "CPU ms", "x the first", "p50 ms", "p99 ms", "x the first", "per second")
    lines = [
        (
            row.case,
            f"{row.figures.cpu_ms:.3f}",
            f"{row.ratio:.2f}",
            f"{row.figures.p50_ms:.1f}",
            f"{row.figures.p99_ms:.1f}",
            f"{row.figures.p99_ms / first_p99:.2f}",
            f"{row.figures.per_second:.0f}",
        )
        for row in rows
    ]
    return Table(name, headings, lines, note)
