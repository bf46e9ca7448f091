"""`python -m bench`: starts the servers, measures, prints (see docs/performance.md)."""

import argparse
import json
import sys
import time
from dataclasses import asdict

from bench import comparison, profiling
from bench.clients import Population
from bench.report import table_of
from bench.stage import stage
from tests.servers import CHECKOUT


def main() -> None:
    """Reads the command line and runs what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.set_defaults(users=1_000_000)
    commands = parser.add_subparsers(required=True)

    compare = commands.add_parser("compare", help="this service beside its peers")
    compare.set_defaults(run=_compare)
    compare.add_argument("--users", type=int, help="size of the registry")
    compare.add_argument("--rounds", type=int, default=5)
    compare.add_argument("--seconds", type=float, default=4.0, help="of load in each run")
    compare.add_argument("--only", default="", help="cases that hold one of these words: a,b")
    compare.add_argument("--write", action="store_true", help="into docs/performance.md")

    profile = commands.add_parser("profile", help="where the CPU time of a login goes")
    profile.set_defaults(run=_profile)
    profile.add_argument("--users", type=int, help="size of the registry")
    profile.add_argument("--seconds", type=float, default=8.0)
    profile.add_argument("--label", default="now", help="the name under which it is kept")
    profile.add_argument("--beside", nargs="*", default=[], help="labels of earlier profiles")

    given = parser.parse_args()
    given.run(given)


def _compare(given: argparse.Namespace) -> None:
    with stage() as running:
        rows = comparison.compare(
            running,
            Population(given.users),
            count=given.rounds,
            seconds=given.seconds,
            only=[word for word in given.only.split(",") if word],
            progress=_say,
        )
        print(table_of(rows, unit=comparison.UNIT).as_text())
        kept = {"users": given.users, "rows": [asdict(row) for row in rows]}
        (running.folder / "compare.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _profile(given: argparse.Namespace) -> None:
    folder = CHECKOUT / "var" / "profile"
    before = profiling.earlier(folder, given.beside)
    population, flames = Population(given.users), folder / f"{given.label}.svg"
    with stage() as running:
        now = profiling.by_hop(running, population, folder, given.label, given.seconds)
        profiling.flame_graph(running, population, flames, given.seconds)
    print(profiling.table([*before, now]).as_text())
    print(f"flame graph: {flames}")


_started = time.monotonic()


def _say(text: str) -> None:
    print(f"{time.monotonic() - _started:6.0f} s  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
