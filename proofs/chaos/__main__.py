"""`make chaos`: faults under load, with real processes, and what became of each promise.

`python -m proofs.chaos [--patroni] [--only NAME…] [--minutes 15] [--list]`; the figures are also in
`var/drill.txt`.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tests.servers import processes
from tests.servers.processes import CHECKOUT, NotAvailable, new_folder
from tests.servers.service import set_django_up

if TYPE_CHECKING:  # they need Django's models, so they are imported when it is set up
    from proofs.chaos.drill import Result
    from proofs.chaos.scenarios.scenario import Scenario

# More than any one takes.
_SCENARIO_SECONDS = 45.0
_PATRONI_SECONDS = 90.0
_FIGURES = CHECKOUT / "var" / "drill.txt"


def main() -> int:
    """0 if every scenario passed, and no scenario was left out."""
    parser = argparse.ArgumentParser(description="Faults under load.")
    parser.add_argument("--patroni", action="store_true", help="the leader of Patroni's members")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios")
    parser.add_argument("--minutes", type=float, default=15.0, help="no scenario starts later")
    parser.add_argument("--list", action="store_true", help="the names of the scenarios")
    parser.add_argument("--outage", type=float, default=15.0, help="seconds of those with APIs")
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
    from proofs.chaos.cluster import running_cluster, running_patroni_site
    from proofs.chaos.scenarios import ALL
    from proofs.chaos.scenarios.leaders import PATRONI
    from proofs.chaos.scenarios.outages import scenarios

    every: tuple[Scenario[Any], ...] = (
        PATRONI if options.patroni else (*scenarios(options.outage), *ALL)
    )
    chosen = [one for one in every if not options.only or one.name in options.only]
    unknown = {*(options.only or ())} - {one.name for one in every}
    if options.list or unknown:
        sys.stdout.write("".join(f"{one.name:18} {one.title}\n" for one in every))
        return len(unknown)
    site = running_patroni_site() if options.patroni else running_cluster()
    results = _run_all(chosen, site, options)
    passed = sum(1 for result in results if result.seen and not result.broken)
    sys.stdout.write(f"{passed} of {len(results)} scenarios passed\n")
    return int(any(result.broken or result.not_tested for result in results))


def _run_all(
    chosen: Sequence[Scenario[Any]], site: AbstractContextManager[Any], options: argparse.Namespace
) -> list[Result[Any]]:
    from proofs.chaos.drill import Result, line_of, run

    ends_at = time.monotonic() + 60 * options.minutes
    takes = _PATRONI_SECONDS if options.patroni else _SCENARIO_SECONDS + options.outage
    results: list[Result[Any]] = []
    _FIGURES.write_text("")
    try:
        with site as cluster:
            for scenario in chosen:
                if time.monotonic() + takes > ends_at:
                    results.append(Result(scenario, not_tested="the time of the drill was over"))
                else:
                    results.append(run(scenario, cluster))
                line = f"{line_of(results[-1])}\n"
                sys.stdout.write(line)
                sys.stdout.flush()
                with _FIGURES.open("a") as figures:
                    figures.write(line)
    except NotAvailable as reason:
        results = [Result(scenario, not_tested=str(reason)) for scenario in chosen]
        sys.stdout.write(f"NOT TESTED: {reason}\n")
    return results


if __name__ == "__main__":
    sys.exit(main())
