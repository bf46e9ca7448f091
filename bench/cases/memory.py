"""`memory`: whether a worker grows with the number of logins that it has answered."""

from bench.clients import Population
from bench.measure import Case, send
from bench.peers.service import LOGIN
from bench.processes import busiest, proportional_bytes, resident_bytes
from bench.report import Table, progress
from bench.servers import WORKERS
from bench.session import Session

_REQUESTS, _RUN_SECONDS, _LINES = 10_000, 5.0, 12


def run(session: Session, users: int = 1_000_000, logins: int = 1_000_000) -> list[Table]:
    """Memory of the larger worker, again and again until so many logins were answered."""
    population = Population(users)
    case = Case("memory", LOGIN, LOGIN.start(session, population), population)
    lines: list[tuple[str, ...]] = []
    answered = 0
    while answered < logins:
        answered += send(case, _REQUESTS, seed=answered, seconds=_RUN_SECONDS).answered
        # The workers are known by their work, so only after the first run.
        workers = busiest(case.server.pid, WORKERS)
        memory = (max(map(bytes_of, workers)) for bytes_of in (resident_bytes, proportional_bytes))
        lines.append((f"{answered:,}", *(f"{size / 2**20:.1f}" for size in memory)))
        progress(f"{answered:,} logins: {lines[-1][1]} MB")
    shown = [*lines[: -1 : max(1, (len(lines) - 1) // (_LINES - 1))], lines[-1]]
    headings = ("logins answered", "MB of a worker", "shared memory in parts")
    return [Table("memory", headings, shown, f"{users:,} system users.")]
