"""`make chaos`: faults under load, with real processes, and what became of each promise.

`python -m tests.chaos [--only NAME…] [--minutes 15] [--write] [--list]`
"""

import argparse
import logging
import shutil
import signal
import sys
import time

from tests.servers import processes
from tests.servers.processes import new_folder
from tests.servers.service import set_django_up

_SCENARIO_SECONDS = 45.0  # more than any one takes


def main() -> int:
    """0 if every scenario passed, and no scenario was left out."""
    parser = argparse.ArgumentParser(description="Faults under load.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios")
    parser.add_argument("--minutes", type=float, default=15.0, help="no scenario starts later")
    parser.add_argument("--write", action="store_true", help="the table into docs/reliability.md")
    parser.add_argument("--list", action="store_true", help="the names of the scenarios")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _exit)
    folder = new_folder("drill")
    processes.running = folder / "running"
    processes.running.mkdir()
    try:
        set_django_up(folder)
        logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each request otherwise
        return _drill(options)
    finally:
        processes.kill_those_left()
        shutil.rmtree(folder, ignore_errors=True)


def _exit(number: int, frame: object) -> None:
    sys.exit(128 + number)  # by way of the `finally` of everything that runs


def _drill(options: argparse.Namespace) -> int:
    from tests.chaos import report
    from tests.chaos.cluster import running_cluster
    from tests.chaos.drill import Result, run
    from tests.chaos.scenarios import ALL

    chosen = [one for one in ALL if not options.only or one.name in options.only]
    unknown = {*(options.only or ())} - {one.name for one in ALL}
    if options.list or unknown:
        sys.stdout.write("".join(f"{one.name:18} {one.title}\n" for one in ALL))
        return len(unknown)
    began = time.monotonic()
    ends_at = began + 60 * options.minutes
    results = []
    with running_cluster() as cluster:
        for scenario in chosen:
            if time.monotonic() + _SCENARIO_SECONDS > ends_at:
                results.append(Result(scenario, not_tested="the time of the drill was over"))
            else:
                results.append(run(scenario, cluster))
            sys.stdout.write(f"{report.line_of(results[-1])}\n")
            sys.stdout.flush()
    text = report.written(results, (time.monotonic() - began) / 60)
    if options.write:
        report.write(text)
    passed = sum(1 for result in results if result.seen and not result.broken)
    sys.stdout.write(f"{passed} of {len(results)} scenarios passed\n")
    return int(any(result.broken or result.not_tested for result in results))


if __name__ == "__main__":
    sys.exit(main())
