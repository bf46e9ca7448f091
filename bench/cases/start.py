"""`start`: how long it takes from the start of the process to the first token."""

import statistics
import time

from bench import targets
from bench.clients import Population
from bench.load import send
from bench.peers import service
from bench.report import Table, progress
from bench.session import Session
from bench.targets import Target
from bench.token_requests import SIGNED_TOKEN, Random, taxpayer_login


def run(session: Session, users: int = 1_000_000, rounds: int = 5) -> list[Table]:
    """Seconds from the start of the process to the first token."""
    population, chance = Population(users), Random(1)
    url = session.copy_of_registry(population, "start")

    def issues_token(port: int) -> bool:
        requests = [taxpayer_login(population, 1, chance)]
        try:
            return send(port, requests, SIGNED_TOKEN, connections=1, seconds=0.001).answered > 0
        except OSError:
            return False

    seconds = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        server = service.start_on(session, "start", url, issues_token)
        seconds.append(time.perf_counter() - started)
        server.stop()
        progress(f"first token after {seconds[-1]:.2f} s")
    del seconds[0]  # it made the signing key and filled the disk cache
    median, note = statistics.median(seconds), "Files in the disk cache."
    line = (str(rounds), f"{median:.2f}", f"{max(seconds):.2f}")
    headings = ("starts", "median s", "slowest s")
    target = Target("first token after the start", 2, 1, "s")
    return [
        Table("start", headings, [line], note),
        targets.table("start targets", [(target, median)], note),
    ]
