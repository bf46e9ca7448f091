"""One run of one case, and several rounds of many."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench import figures, load, tokens
from bench.clients import Population
from bench.figures import Figures, Row, percentile
from bench.load import Outcome
from bench.peers import Candidate
from bench.processes import busiest, cpu_seconds, resident_bytes
from bench.report import progress
from bench.servers import WORKERS, Server

_WARM_UP_SECONDS = 0.7


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate whose server runs, with so many connections."""

    name: str
    candidate: Candidate
    server: Server
    population: Population
    connections: int = 16


def send(case: Case, count: int, seed: int, seconds: float, rate: float | None = None) -> Outcome:
    """Sends so many requests, again from the first if they are not enough. Raises WrongAnswer."""
    chance = Random(seed)  # noqa: S311 - which client it is, is no secret
    requests = [case.candidate.request(case.population, chance) for _ in range(count)]
    outcome = load.send(
        case.server.port, requests, case.candidate.expected, case.connections, seconds, rate
    )
    outcome.raise_if_wrong(case.name)
    return outcome


def measure(case: Case, seconds: float, seed: int, rate: float | None = None) -> Figures:
    """Raises WrongAnswer or BadToken if a single answer was not the expected one."""
    warm_up = send(case, 2_000, seed + 1_000_000, min(seconds, _WARM_UP_SECONDS))
    # Enough requests for the whole run: a client comes twice only by chance.
    count = int((rate or warm_up.per_second * 1.5) * seconds) + 1_000
    server = case.server
    before = _server_and_database_seconds(server)
    outcome = send(case, count, seed, seconds, rate)
    after = _server_and_database_seconds(server)
    if case.candidate.expected.is_signed:
        tokens.verify(outcome.samples, server.port)
    return Figures(
        server_cpu_ms=(after[0] - before[0]) * 1000 / outcome.answered,
        database_cpu_ms=(after[1] - before[1]) * 1000 / outcome.answered,
        per_second=outcome.per_second,
        p50_ms=percentile(outcome.latencies, 0.50),
        p99_ms=percentile(outcome.latencies, 0.99),
        worker_mb=max(map(resident_bytes, busiest(server.pid, WORKERS))) / 2**20,
    )


def measure_rounds(cases: Sequence[Case], rounds: int, seconds: float) -> list[Row]:
    """Every case once in each round, so that a slow minute of the machine affects all alike."""
    measured = []
    for number in range(rounds):
        of_round: dict[int, Figures] = {}
        # Every other round backwards: no case always runs after the same one.
        for index, case in list(enumerate(cases))[:: -1 if number % 2 else 1]:
            of_round[index] = measure(case, seconds, time.time_ns() % 1_000_000_007 + index)
            progress(
                f"round {number + 1}/{rounds} {case.name} x{case.connections}:"
                f" {of_round[index].cpu_ms:.3f} ms"
            )
        measured.append([of_round[index] for index in range(len(cases))])
    return figures.rows([(case.name, case.connections) for case in cases], measured)


def _server_and_database_seconds(server: Server) -> tuple[float, float]:
    return cpu_seconds(server.pid), cpu_seconds(server.database.pid) if server.database else 0.0
