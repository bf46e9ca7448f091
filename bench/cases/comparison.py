"""`compare`: this service beside its peers, and which targets it meets."""

from collections.abc import Iterator, Sequence
from functools import cache
from operator import attrgetter

from bench import targets
from bench.clients import Population
from bench.figures import Rounds
from bench.measure import Case, measure_rounds, meet_clients
from bench.peers import Missing, bare_view, oidc_provider, service, toolkit
from bench.report import Table, progress
from bench.session import Session
from bench.targets import Target

BASELINE = bare_view.BARE_VIEW
# The baseline, by which everything is divided, runs at the beginning, in the middle and at the end.
PEERS = (
    *(BASELINE, toolkit.STOCK, toolkit.FAST_HASHER),
    *(oidc_provider.STORED, oidc_provider.SIGNED, BASELINE),
)
SERVICE = (service.LOGIN, *service.OTHERS)


def run(
    session: Session,
    users: int = 1_000_000,
    rounds: int = 12,  # many short ones: a machine is seldom as fast a minute later
    seconds: float = 1.0,
    only: Sequence[str] = ("",),
) -> list[Table]:
    """The service beside its peers; --only those whose name contains one of these words."""
    population = Population(users)
    server_of = cache(lambda start: start(session, population))  # each starts once
    cases: list[Case] = []
    missing: list[str] = []
    for candidate in (*PEERS, *SERVICE, BASELINE):
        if candidate is not BASELINE and not any(word in candidate.name for word in only):
            continue
        try:
            server = server_of(candidate.start)
        except Missing as error:
            missing.append(f"{candidate.name} was skipped: {error}.")
            progress(missing[-1].upper())
            continue
        cases += [
            Case(candidate.name, candidate, server, population, connections)
            for connections in candidate.connections
        ]
    meet_clients(cases)
    session.settle()
    measured = measure_rounds(cases, rounds, seconds, PEERS)
    note = f"{users:,} system users, medians of {rounds} rounds of {seconds} s."
    return [
        _table(measured, " ".join([note, *missing])),
        targets.table("targets", list(_targets(measured)), note),
    ]


def _table(measured: Rounds, note: str) -> Table:
    headings = (
        *("who", "connections", f"x {BASELINE.name}", "CPU ms", "of it database"),
        *("per second", "p50 ms", "p99 ms"),
    )
    lines = []
    for name, connections in dict.fromkeys(measured.cases):
        of = measured.medians(name, connections)
        ratio = measured.ratio(name, connections, BASELINE.name) or 0
        cpu = (f"{ms:.3f}" for ms in (of.cpu_ms, of.database_cpu_ms))
        latency = (f"{of.p50_ms:.1f}", f"{of.p99_ms:.1f}")
        first = (name, str(connections), f"{ratio:.2f}")
        lines.append((*first, *cpu, f"{of.per_second:.0f}", *latency))
    return Table("comparison", headings, lines, note)


def _targets(measured: Rounds) -> Iterator[tuple[Target, float | None]]:
    ratio, login, bare = measured.ratio, service.LOGIN.name, BASELINE.name
    loads = service.LOGIN.connections
    for load, must, goal in zip(loads, (2.9, 2.5), (2.3, 2.0), strict=True):
        name = f"{login}, {load} connections, of a bare view"
        yield Target(name, must, goal), ratio(login, load, bare)
    for candidate, base, must, goal in (
        (service.INTERMEDIARY, service.LOGIN, 1.2, 1.1),
        (service.PRIVATE_KEY, service.LOGIN, 1.25, 1.15),
        (service.FIRST_LOGIN, BASELINE, 4.2, 3.3),
        (service.WRONG, service.LOGIN, 0.8, 0.6),
        (service.BLOCKED_USER, service.LOGIN, 0.8, 0.6),
        (service.INCOMPLETE, service.LOGIN, 0.5, 0.4),
        (service.HAMMERING, BASELINE, 1.0, 0.8),
        (service.INTROSPECTION, BASELINE, 4.0, 3.0),
        (service.OWN_TOKEN, BASELINE, 4.0, 3.0),
    ):
        name = f"{candidate.name}, of a {base.name}"
        yield Target(name, must, goal), ratio(candidate.name, 16, base.name)
    yield (
        Target("logins a second on SQLite, of PostgreSQL's", 0.7, 1, is_at_least=True),
        ratio(service.SQLITE.name, 16, login, attrgetter("per_second")),
    )
    for load, must, goal in zip(loads, (1.3, 1.6), (1.6, 2.0), strict=True):
        peer, name = toolkit.FAST_HASHER.name, f"{load} connections, of a {login}"
        yield Target(f"{peer}, {name}", 5, None, is_at_least=True), ratio(peer, load, login)
        peer = oidc_provider.STORED.name
        yield Target(f"{peer}, {name}", must, goal, is_at_least=True), ratio(peer, load, login)
