"""One run of one case, and several rounds of many."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from random import Random

from bench import load, tokens
from bench.clients import Population
from bench.figures import Figures, Rounds, percentile
from bench.load import Outcome, WrongAnswer
from bench.peers import Candidate
from bench.processes import cpu_seconds
from bench.report import progress
from bench.servers import Server

_WARM_UP_SECONDS, _WARM_UP_REQUESTS = 0.7, 2_000
_CHANCE = Random(9)  # noqa: S311 - which client it is, is no secret
_AT_ONCE = 200_000


class PeerFailed(WrongAnswer):
    """A wrong answer, not of this service."""


@dataclass(slots=True)
class Case:
    """A candidate whose server runs, with so many connections."""

    name: str
    candidate: Candidate
    server: Server
    population: Population
    connections: int = 16
    clients: Iterator[int] = field(init=False)
    warm_up_clients: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        role = self.candidate.role
        self.clients = self.warm_up_clients = each_in_turn(self.population.met(role))
        if self.candidate.is_first_login:
            self.clients = iter(_shuffled(self.population.unmet(role)))


def meet_clients(cases: Sequence[Case]) -> None:
    """Each client logs in once on each server where that is asked for. Raises WrongAnswer.

    Before, what a candidate prepares.
    """
    # Not once more for each number of connections.
    for case in {(case.server.port, case.candidate.name): case for case in cases}.values():
        if case.candidate.prepare is not None:
            case.candidate.prepare(case.server, case.population)
        if case.candidate.meets_clients:
            numbers = case.population.met(case.candidate.role)
            progress(f"{case.name}: {len(numbers):,} clients log in once")
            send(case, _shuffled(numbers))


def send(
    case: Case, numbers: Sequence[int], seconds: float = inf, rate: float | None = None
) -> Outcome:
    """One request of each of these clients, for so long at most. Raises WrongAnswer."""
    if not numbers:
        raise WrongAnswer(f"{case.name}: every client has logged in before; use more --users")
    of = case.candidate
    requests = [of.request(case.population, number, _CHANCE) for number in numbers]
    outcome = load.send(case.server.port, requests, of.expected, case.connections, seconds, rate)
    outcome.raise_if_wrong(case.name)
    return outcome


def measure(case: Case, seconds: float, rate: float | None = None) -> Figures:
    """Raises WrongAnswer or BadToken if a single answer was not the expected one."""
    numbers = list(islice(case.warm_up_clients, _WARM_UP_REQUESTS))
    warm_up = send(case, numbers, min(seconds, _WARM_UP_SECONDS))
    # Enough for the whole run: each request is from another client.
    count = int((rate or warm_up.per_second * 1.5) * seconds) + 1_000
    numbers = list(islice(case.clients, count))
    server = case.server
    before = _server_and_database_seconds(server)
    outcome = send(case, numbers, seconds, rate)
    after = _server_and_database_seconds(server)
    if case.candidate.expected.is_signed:
        tokens.verify(outcome.samples, server.port)
    return Figures(
        server_cpu_ms=(after[0] - before[0]) * 1000 / outcome.answered,
        database_cpu_ms=(after[1] - before[1]) * 1000 / outcome.answered,
        per_second=outcome.per_second,
        p50_ms=percentile(outcome.latencies, 0.50),
        p99_ms=percentile(outcome.latencies, 0.99),
    )


def measure_rounds(
    cases: Sequence[Case], rounds: int, seconds: float, peers: Collection[Candidate] = ()
) -> Rounds:
    """Every case once in each round, so that a slow minute of the machine affects all alike.

    A round in which a peer gives a wrong answer is measured again, a quarter of the rounds at most.
    Raises WrongAnswer after that, and for each wrong answer of the service.
    """
    measured: list[list[Figures]] = []
    failed_rounds = 0
    while len(measured) < rounds:
        title = f"round {len(measured) + 1}/{rounds}"
        try:
            # Every other one backwards: no case always runs after the same one.
            order = list(enumerate(cases))[:: -1 if len(measured) % 2 else 1]
            measured.append(_measure_round(order, title, seconds, peers))
        except PeerFailed as failed:
            failed_rounds += 1
            if failed_rounds > rounds / 4:
                raise
            progress(f"{title} is measured again: {failed}")
    return Rounds([(case.name, case.connections) for case in cases], measured)


def _measure_round(
    order: Sequence[tuple[int, Case]], title: str, seconds: float, peers: Collection[Candidate]
) -> list[Figures]:
    """The figures by the index of their case. Raises WrongAnswer, of a peer PeerFailed."""
    figures: dict[int, Figures] = {}
    for index, case in order:
        try:
            figures[index] = measure(case, seconds)
        except WrongAnswer as wrong:
            if case.candidate in peers:
                raise PeerFailed(str(wrong)) from wrong
            raise
        progress(f"{title} {case.name} x{case.connections}: {figures[index].cpu_ms:.3f} ms")
    return [figures[index] for index in sorted(figures)]


def each_in_turn(numbers: range) -> Iterator[int]:
    """Without an end, in random order: again only after all, or very many, of the others."""
    while True:
        yield from _shuffled(numbers)


def _shuffled(numbers: range) -> list[int]:
    """In random order, each once; so many at most that they fit into memory."""
    return _CHANCE.sample(numbers, min(len(numbers), _AT_ONCE))


def _server_and_database_seconds(server: Server) -> tuple[float, float]:
    return cpu_seconds(server.pid), cpu_seconds(server.database.pid) if server.database else 0.0
