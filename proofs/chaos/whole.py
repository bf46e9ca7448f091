"""The whole drill: the scenarios that were chosen, one after the other."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

from proofs.chaos.cluster import running_cluster, running_patroni_site
from proofs.chaos.drill import Result, line_of, run
from proofs.chaos.scenarios import ALL
from proofs.chaos.scenarios.leaders import PATRONI
from proofs.chaos.scenarios.outages import scenarios
from proofs.chaos.scenarios.scenario import Scenario
from tests.servers.processes import CHECKOUT, NotAvailable

# More than any one takes.
_SCENARIO_SECONDS = 45.0
_PATRONI_SECONDS = 90.0
_FIGURES = CHECKOUT / "var" / "drill.txt"


def whole_drill(options: Namespace) -> int:
    """0 if every scenario passed; what each has shown is written at once."""
    every: Sequence[Scenario[Any]] = (*scenarios(options.outage), *ALL)
    every = PATRONI if options.patroni else every
    chosen = [one for one in every if not options.only or one.name in options.only]
    unknown = {*options.only} - {one.name for one in every}
    if options.list or unknown:
        sys.stdout.write("".join(f"{one.name:18} {one.title}\n" for one in every))
        return len(unknown)
    results = []
    with _FIGURES.open("w") as figures:
        for result in _results(chosen, options):
            results.append(result)
            for output in (sys.stdout, figures):
                output.write(f"{line_of(result)}\n")
                output.flush()
    passed = sum(1 for result in results if result.seen and not result.broken)
    sys.stdout.write(f"{passed} of {len(results)} scenarios passed\n")
    return int(any(result.broken or result.not_tested for result in results))


def _results(chosen: Sequence[Scenario[Any]], options: Namespace) -> Iterator[Result]:
    ends_at = time.monotonic() + 60 * options.minutes
    takes = _PATRONI_SECONDS if options.patroni else _SCENARIO_SECONDS + options.outage
    try:
        with running_patroni_site() if options.patroni else running_cluster() as cluster:
            for scenario in chosen:
                if time.monotonic() + takes > ends_at:
                    yield Result(scenario.name, not_tested="the time of the drill was over")
                else:
                    yield run(scenario, cluster)
    except NotAvailable as reason:
        yield from (Result(scenario.name, not_tested=str(reason)) for scenario in chosen)
