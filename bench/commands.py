"""What `python -m bench` can be asked for."""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from bench import comparison, growth, latency, memory, page, profiling, sizing, start
from bench.chart import Bar, draw
from bench.clients import Population
from bench.measure import Row
from bench.report import Table, table_of
from bench.stage import Stage, stage
from tests.support.servers import CHECKOUT

Given = argparse.Namespace
_CHARTS = page.PAGE.parent / "performance"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, about: str, **defaults: float) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(run=run)
        added.add_argument("--users", type=int, default=1_000_000, help="size of the registry")
        added.add_argument("--write", action="store_true", help="into docs/performance.md")
        for option, default in defaults.items():
            added.add_argument(f"--{option}", type=type(default), default=default)
        return added

    compare = command("compare", _compare, "the service beside its peers", rounds=5, seconds=3.0)
    compare.add_argument("--only", default="", help="cases that hold one of these words: a,b")
    grow = command("growth", _growth, "cost with more users and events", rounds=5, seconds=4.0)
    grow.add_argument("--sizes", type=_numbers, default=[1_000, 100_000, 1_000_000])
    grow.add_argument("--events", type=_numbers, default=[0, 1_000_000, 10_000_000])
    command("latency", _latency, "waiting at 70 % of the throughput", rounds=5, seconds=8.0)
    command("memory", _memory, "a worker's memory over many logins", logins=1_000_000)
    command("start", _start, "from process start to first token", rounds=5)
    profile = command("profile", _profile, "CPU time of a login by hop", seconds=8.0)
    profile.add_argument("--label", default="now", help="the name under which it is kept")
    profile.add_argument("--beside", nargs="*", default=[], help="labels of earlier profiles")
    return whole


def _compare(given: Given) -> None:
    with stage() as running:
        only = [word for word in given.only.split(",") if word]
        rows = comparison.compare(
            running,
            Population(given.users),
            count=given.rounds,
            seconds=given.seconds,
            only=only,
            progress=_say,
        )
        _keep(running, "compare", given, rows)
    about = f"{given.users:,} system users, medians of {given.rounds} rounds of {given.seconds} s."
    _show("comparison", table_of(rows, unit=comparison.UNIT), given, about)
    if (login := comparison.login(rows)) is not None:
        _show("sizing", sizing.table(login), given, "From the figures above.")
    if given.write:
        _draw("comparison", "CPU milliseconds of a login", comparison.charted(rows))


def _growth(given: Given) -> None:
    with stage() as running:
        timing = {"count": given.rounds, "seconds": given.seconds, "progress": _say}
        users = growth.with_users(running, given.sizes, **timing)
        running.clear()
        events = growth.with_events(running, given.events, Population(given.users), **timing)
        _keep(running, "growth", given, [*users, *events])
    about = f"Medians of {given.rounds} rounds of {given.seconds} s."
    _show("growth by users", growth.table(users), given, about)
    _show("growth by logins", growth.table(events), given, f"{given.users:,} users. {about}")
    if given.write:
        _draw("growth", "CPU milliseconds of a login as the service grows", [*users, *events])


def _latency(given: Given) -> None:
    with stage() as running:
        found = latency.under_load(
            running,
            Population(given.users),
            count=given.rounds,
            seconds=given.seconds,
            progress=_say,
        )
    about = f"{given.users:,} users, medians of {given.rounds} rounds of {given.seconds} s."
    _show("latency", latency.table(found), given, about)


def _memory(given: Given) -> None:
    with stage() as running:
        readings = memory.watch(running, Population(given.users), given.logins, _say)
    _show("memory", memory.table(readings), given, f"{given.users:,} system users.")


def _start(given: Given) -> None:
    with stage() as running:
        took = start.first_tokens(running, Population(given.users), given.rounds)
    _show("start", start.table(took), given, "Files in the disk cache.")


def _profile(given: Given) -> None:
    folder = CHECKOUT / "var" / "profile"
    before = profiling.earlier(folder, given.beside)
    population, flames = Population(given.users), folder / f"{given.label}.svg"
    with stage() as running:
        now = profiling.by_hop(running, population, folder, given.label, given.seconds)
        profiling.flame_graph(running, population, flames, given.seconds)
    _show("profile", profiling.table([*before, now]), given, f"{given.users:,} system users.")
    print(f"flame graph: {flames}")


def _show(name: str, table: Table, given: Given, about: str) -> None:
    print(f"\n{table.as_text()}\n{about}")
    if given.write:
        page.write(name, table, about=about)


def _draw(name: str, title: str, rows: Sequence[Row]) -> None:
    bars = [
        Bar(
            f"{row.case} ({row.connections})",
            (row.figures.server_cpu_ms, row.figures.database_cpu_ms),
        )
        for row in rows
    ]
    draw(_CHARTS / f"{name}.svg", title, ("server", "database"), bars)


def _keep(running: Stage, name: str, given: Given, rows: Sequence[Row]) -> None:
    options = {name: value for name, value in vars(given).items() if name != "run"}
    kept = {
        "options": options,
        "python": platform.python_version(),
        "rows": [asdict(row) for row in rows],
    }
    (running.folder / f"{name}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _numbers(text: str) -> list[int]:
    return [int(number.replace("_", "")) for number in text.split(",")]


_started = time.monotonic()


def _say(text: str) -> None:
    print(f"{time.monotonic() - _started:6.0f} s  {text}", file=sys.stderr, flush=True)
