"""`refusals`: what a request costs that is made to be expensive, at every address, in tokens."""

from collections.abc import Sequence
from random import Random
from statistics import median

from bench import load
from bench.clients import Population
from bench.hostile import ADDRESSES, LOGIN, Address, Hostile, hostile_to
from bench.load import Expected
from bench.measure import Case, meet_clients, send
from bench.peers import service
from bench.processes import exact_cpu_seconds, process_tree
from bench.report import Table, progress
from bench.servers import Server
from bench.session import Session

_MOST, _MOST_THROTTLED = 2.0, 0.2  # tokens
_IN_PAGE = 6  # of the lines, the dearest
_CHANCE = Random(4)  # noqa: S311 - addresses of callers are no secret
_CONNECTIONS = 8
_TOKENS, _SEARCHED, _AGAIN = 200, 8, 150  # requests
_DEAREST = 1  # of each address are measured again, with more requests
_SOURCE, _FREE = "203.0.113.9", 520  # so many malformed requests of an address are heard
_HEADINGS = ("address", "plain", "dearest", "with", "status")


class Meter:
    """CPU time of one service and its database."""

    def __init__(self, server: Server) -> None:
        assert server.database  # noqa: S101 - it runs on PostgreSQL
        self._port = server.port
        self._pids = [*process_tree(server.pid), *process_tree(server.database.pid)]

    def cost(self, hostile: Hostile, count: int, source: str = "") -> tuple[float, int]:
        """CPU seconds of an answer, and its status. Raises WrongAnswer if there is none."""
        requests = [hostile.request(_CHANCE, source) for _ in range(count)]
        before = self.seconds()
        outcome = load.send(self._port, requests, Expected(None, b""), _CONNECTIONS, 30.0)
        seconds = self.seconds() - before
        outcome.raise_if_wrong(hostile.address.name)
        return seconds / outcome.answered, int(outcome.samples[0][9:12])

    def token(self, login: Case) -> float:
        """CPU seconds of a login that gets a token."""
        numbers = [next(login.clients) for _ in range(_TOKENS)]
        before = self.seconds()
        return (send(login, numbers).answered and self.seconds() - before) / _TOKENS

    def seconds(self) -> float:
        return exact_cpu_seconds(self._pids)


def run(
    session: Session, users: int = 2_000, rounds: int = 3, only: Sequence[str] = ("",)
) -> list[Table]:
    """The dearest answer of each address; it fails above two tokens, and throttled a fifth."""
    population = Population(users)
    url = session.copy_of_registry(population, "refusals")
    servers = {
        serve: service.start_on(session, f"refusals_{serve}", url, SERVE=serve)
        for serve in ("login", "staff")
    }
    login = Case("token", service.LOGIN, servers["login"], population)
    meet_clients([login])
    session.settle()
    meters = {serve: Meter(server) for serve, server in servers.items()}

    def line(address: Address, source: str = "") -> tuple[tuple[str, ...], float, float]:
        """Of one address, with the tokens of its plain and of its dearest answer."""
        meter = meters[address.serve]
        if source:
            meter.cost(Hostile(address), _FREE, source)
        plain, *others = hostile_to(address)
        meter.cost(plain, _SEARCHED, source)  # what it needs is imported, and both processes know
        others.sort(key=lambda hostile: meter.cost(hostile, _SEARCHED, source)[0], reverse=True)
        found: list[tuple[float, Hostile, int]] = []
        for hostile in (plain, *others[:_DEAREST]):
            pairs = [
                (meter.cost(hostile, _AGAIN, source), meters["login"].token(login))
                for _ in range(rounds)
            ]
            ratio = median(cost / token for (cost, _status), token in pairs)
            found.append((ratio, hostile, pairs[-1][0][1]))
        ratio, hostile, status = max(found[1:], key=lambda of: of[0])
        name = f"{address.name}, throttled" if source else address.name
        shown = f"{hostile.place} {hostile.unit} x {hostile.length:,}"
        progress(f"{name}: {found[0][0]:.2f}, {ratio:.2f} with {shown}")
        return (name, f"{found[0][0]:.2f}", f"{ratio:.2f}", shown, str(status)), found[0][0], ratio

    chosen = [address for address in ADDRESSES if any(word in address.name for word in only)]
    measured = [(_MOST, *line(address)) for address in chosen]
    if LOGIN in chosen:
        measured.append((_MOST_THROTTLED, *line(LOGIN, _SOURCE)))
    # A page of the staff costs more than a token even if it only says that there is nothing.
    over = [
        cells[0]
        for most, cells, plain, dearest in measured
        if dearest > most + (plain if "(staff)" in cells[0] else 0)
    ]
    lines = sorted((cells for _, cells, *_ in measured), key=lambda cells: -float(cells[2]))
    note = f"In tokens, the dearest of {len(lines)}. {users:,} system users, {rounds} rounds."
    problem = f"Too expensive: {', '.join(over)}." if over else ""
    return [Table("refusals", _HEADINGS, lines, note, problem, _IN_PAGE)]
