"""How long from the start of the process to the first token?"""

import statistics
import time
from collections.abc import Sequence
from functools import partial

from bench import load, scenarios, servers
from bench.clients import Population
from bench.load import Expected, Load
from bench.report import Table
from bench.stage import Stage


def first_tokens(stage: Stage, population: Population, count: int) -> list[float]:
    """Seconds until the first token, of so many starts with a warm disk cache."""
    template = stage.databases.registry(population)
    url = stage.databases.copy(template, "start")
    scenario = scenarios.taxpayer_login(population)
    took = []
    for number in range(count + 1):
        started = time.perf_counter()
        target = servers.start_identity(
            "start",
            stage.folder,
            url,
            stage.database_pid,
            ready=partial(_gives_token, scenario.requests(1, number), scenario.expected),
        )
        took.append(time.perf_counter() - started)
        target.stop()
    return took[1:]  # the first start made the signing key, and warmed the cache


def table(seconds: Sequence[float]) -> Table:
    """The starts in one line."""
    return Table(
        ("starts", "median s", "slowest s"),
        [(str(len(seconds)), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}")],
    )


def _gives_token(requests: Sequence[bytes], expected: Expected, url: str) -> bool:
    port = int(url.rpartition(":")[2])
    try:
        outcome = load.run(Load(port, requests, connections=1, seconds=0.001, expected=expected))
    except OSError:
        return False
    return outcome.answered > 0
