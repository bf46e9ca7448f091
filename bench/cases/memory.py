"""`memory`: whether a worker grows with the number of logins that it has answered."""

from itertools import islice

from bench import targets
from bench.clients import Population
from bench.measure import Case, each_in_turn, send
from bench.peers.service import LOGIN
from bench.processes import busiest, private_bytes, resident_bytes
from bench.report import Table, progress
from bench.servers import WORKERS
from bench.session import Session
from bench.targets import Target

_LOGINS_A_LINE, _CONNECTIONS = 10_000, 64


def run(session: Session, users: int = 1_000_000, logins: int = 1_000_000) -> list[Table]:
    """Memory of the larger worker, again and again until so many logins were answered."""
    population = Population(users)
    case = Case("memory", LOGIN, LOGIN.start(session, population), population, _CONNECTIONS)
    clients = each_in_turn(population.numbers(LOGIN.role))
    measured: list[tuple[int, float, float]] = []
    answered = 0
    while answered < logins:
        answered += send(case, list(islice(clients, _LOGINS_A_LINE))).answered
        # The workers are known by their work, so only after the first logins.
        workers = busiest(case.server.pid, WORKERS)
        private, resident = (
            max(map(bytes_of, workers)) / 2**20 for bytes_of in (private_bytes, resident_bytes)
        )
        measured.append((answered, private, resident))
        progress(f"{answered:,} logins: {private:.1f} MB")
    note = f"{users:,} system users, {_CONNECTIONS} connections."
    shown = [*measured[: -1 : max(1, len(measured) // 3)], measured[-1]]
    lines = [
        (f"{count:,}", f"{private:.1f}", f"{resident:.1f}") for count, private, resident in shown
    ]
    # What each login needs is there after the first tenth.
    settled = measured[len(measured) // 10][1]
    return [
        Table("memory", ("logins answered", "private MB", "with what is shared"), lines, note),
        targets.table(
            "memory targets",
            [
                (Target("private memory of a worker", 70, 50, "MB", decimals=1), measured[-1][1]),
                (
                    Target("at the end, of that after a tenth of the logins", 1.05, 1.02),
                    measured[-1][1] / settled,
                ),
            ],
            note,
        ),
    ]
