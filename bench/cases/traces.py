"""`traces`: what OpenTelemetry traces cost a login, in the same run with and without them."""

from bench import servers
from bench.clients import Population
from bench.measure import Case, measure_rounds, meet_clients
from bench.peers import service
from bench.report import Table
from bench.servers import PROGRAMS, free_port
from bench.session import Session

_OFF = "off"


def run(
    session: Session,
    users: int = 1_000_000,
    rounds: int = 5,
    seconds: float = 3.0,
    connections: int = 64,
) -> list[Table]:
    """The login without traces, with one in a hundred, with all, and without a collector."""
    population = Population(users)
    collector, away = _collector(session), f"http://127.0.0.1:{free_port()}"
    nodes = {
        _OFF: ("", "0"),
        "1 in 100": (collector, "0.01"),
        "1 in 100, collector away": (away, "0.01"),
        "all": (collector, "1"),
    }
    cases = []
    for number, (name, (address, share)) in enumerate(nodes.items()):
        folder = f"traces_{number}"
        url = session.copy_of_registry(population, folder)
        server = service.start_on(
            *(session, folder, url),
            OTEL_EXPORTER_OTLP_ENDPOINT=address,
            OTEL_TRACES_SAMPLER_ARG=share,
        )
        cases.append(Case(name, service.LOGIN, server, population, connections))
    meet_clients(cases)
    session.settle()
    measured = measure_rounds(cases, rounds, seconds)
    lines = []
    for name in nodes:
        of = measured.medians(name, connections)
        ratio = measured.ratio(name, connections, _OFF) or 0
        figures = (of.p50_ms, of.p99_ms)
        lines.append((name, f"{ratio:.3f}", *(f"{ms:.3f}" for ms in figures)))
    note = f"{users:,} system users, medians of {rounds} rounds of {seconds} s."
    return [Table("traces", ("traces", f"x {_OFF}", "p50 ms", "p99 ms"), lines, note)]


def _collector(session: Session) -> str:
    port = free_port()
    command = [str(PROGRAMS / "python"), "-m", "bench.peers.collector", str(port)]
    log = session.folder / "collector.log"
    session.add(servers.start(command, port, log, environment={}))
    return f"http://127.0.0.1:{port}"
