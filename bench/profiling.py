"""Where the CPU time of a login goes: a table by hop, and a flame graph from py-spy's samples."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import scenarios
from bench.clients import Population
from bench.hops import HOPS
from bench.measure import Case, measure
from bench.processes import busiest
from bench.report import Table
from bench.stage import Stage

_SAMPLES_PER_SECOND = 250
_SERVER, _DATABASE = "uWSGI and its router", "PostgreSQL"
_NAMES = (*HOPS, _SERVER, _DATABASE)


class CannotSample(Exception):
    """py-spy may not look into the worker; the message is its own."""


@dataclass(frozen=True, slots=True)
class Profile:
    """CPU milliseconds of one login by hop."""

    label: str
    hops: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.hops.values())


def by_hop(
    stage: Stage, population: Population, folder: Path, label: str, seconds: float
) -> Profile:
    """Measures the service with a stopwatch at each hop; keeps `label.json` in `folder`."""
    times = folder / "hops"
    times.mkdir(parents=True, exist_ok=True)
    for old in times.glob("*.json"):
        old.unlink()
    target = stage.identity_timed(population, times)
    case = Case("profile", target, scenarios.taxpayer_login(population))
    figures = measure(case, seconds=seconds, seed=1)
    spent: Counter[str] = Counter()
    logins = 0
    for file in times.glob("*.json"):
        thread = json.loads(file.read_text())
        spent.update(thread["nanoseconds"])
        logins += thread["logins"]
    hops = {name: spent[name] / logins / 1e6 for name in HOPS}
    hops[_SERVER] = figures.server_cpu_ms - sum(hops.values())
    hops[_DATABASE] = figures.database_cpu_ms
    taken = Profile(label, hops)
    (folder / f"{label}.json").write_text(json.dumps(asdict(taken), indent=1), encoding="utf-8")
    return taken


def flame_graph(stage: Stage, population: Population, file: Path, seconds: float) -> None:
    """Samples the busiest worker under load, whichever thread holds the interpreter's lock.

    What a thread does without the lock (system calls) is not in it. Raises CannotSample.
    """
    target = stage.identity("flame", population)
    case = Case("flame graph", target, scenarios.taxpayer_login(population))
    load = threading.Thread(
        target=measure, kwargs={"case": case, "seconds": seconds + 3, "seed": 2}, daemon=True
    )
    load.start()
    time.sleep(2)  # the load is on by now
    (worker,) = busiest(target.pid, 1)
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "py-spy"), "record"),
            *("--pid", str(worker), "--gil", "--function"),
            *("--rate", str(_SAMPLES_PER_SECOND), "--duration", str(int(seconds))),
            *("--output", str(file)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    load.join()
    if done.returncode:
        raise CannotSample(done.stderr.strip())


def earlier(folder: Path, labels: Sequence[str]) -> list[Profile]:
    """Profiles that were taken before, by their labels. Raises FileNotFoundError."""
    return [Profile(**json.loads((folder / f"{label}.json").read_text())) for label in labels]


def table(profiles: Sequence[Profile]) -> Table:
    """The profiles beside each other, the last one with the share of each hop."""
    headings = ("CPU ms of a login", *(profile.label for profile in profiles), "share")
    lines = [
        (
            name,
            *(f"{profile.hops.get(name, 0.0):.3f}" for profile in profiles),
            f"{profiles[-1].hops[name] / profiles[-1].total * 100:.0f} %",
        )
        for name in _NAMES
    ]
    total = ("all", *(f"{profile.total:.3f}" for profile in profiles), "100 %")
    return Table(headings, [*lines, total])
