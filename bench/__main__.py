"""`python -m bench`: starts the servers, measures, prints (see docs/performance.md)."""

import argparse
import sys
import time

from bench import comparison
from bench.clients import Population
from bench.report import as_text, write_json
from bench.stage import stage


def main() -> None:
    """Reads the command line and runs what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    compare = commands.add_parser("compare", help="this service beside its peers")
    compare.set_defaults(run=_compare)
    compare.add_argument("--users", type=int, default=1_000_000, help="size of the registry")
    compare.add_argument("--rounds", type=int, default=5)
    compare.add_argument("--seconds", type=float, default=4.0, help="of load in each run")
    compare.add_argument("--only", default="", help="cases that hold one of these words: a,b")
    compare.add_argument("--write", action="store_true", help="into docs/performance.md")
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
        print(as_text(rows))
        write_json(rows, {"users": given.users}, running.folder / "compare.json")


_started = time.monotonic()


def _say(text: str) -> None:
    print(f"{time.monotonic() - _started:6.0f} s  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
