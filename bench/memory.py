"""Does a worker grow with the number of logins it has answered?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import load, scenarios
from bench.clients import Population
from bench.load import Load
from bench.measure import Progress, silent
from bench.processes import busiest, proportional_bytes, resident_bytes
from bench.report import Table
from bench.servers import WORKERS
from bench.stage import Stage

_CONNECTIONS = 16
_CHUNK_SECONDS = 5.0
_LINES = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory of the greatest worker after so many logins, in MB."""

    logins: int
    resident_mb: float
    proportional_mb: float  # what it shares with the others counted in parts


def watch(
    stage: Stage, population: Population, logins: int, progress: Progress = silent
) -> list[Reading]:
    """A reading every few seconds until so many logins were answered."""
    target = stage.identity("memory", population)
    scenario = scenarios.taxpayer_login(population)
    readings: list[Reading] = []
    done, speed = 0, 1_000.0
    while done < logins or not readings:
        requests = scenario.requests(int(speed * _CHUNK_SECONDS * 1.3), time.time_ns())
        outcome = load.run(
            Load(target.port, requests, _CONNECTIONS, _CHUNK_SECONDS, scenario.expected)
        )
        outcome.raise_if_wrong("memory")
        done, speed = done + outcome.answered, outcome.answered / outcome.seconds
        # Not before: which processes are the workers, is seen by their work.
        readings.append(_read(target.pid, done))
        progress(f"{done:,} logins: {readings[-1].resident_mb:.1f} MB")
    return readings


def table(readings: Sequence[Reading]) -> Table:
    """A dozen readings, the first and the last among them."""
    step = max(1, (len(readings) - 1) // (_LINES - 1))
    chosen = [*readings[:-1:step], readings[-1]]
    return Table(
        ("logins answered", "MB of a worker", "shared memory in parts"),
        [
            (f"{reading.logins:,}", f"{reading.resident_mb:.1f}", f"{reading.proportional_mb:.1f}")
            for reading in chosen
        ],
    )


def _read(root: int, logins: int) -> Reading:
    workers = busiest(root, WORKERS)
    return Reading(
        logins,
        max(map(resident_bytes, workers)) / 2**20,
        max(map(proportional_bytes, workers)) / 2**20,
    )
