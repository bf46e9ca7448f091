"""Runs scenarios under load, and judges each by what clients and database show."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
import jwt
import psycopg

from proofs.chaos.answers import NO_ANSWER, Answer
from proofs.chaos.cluster import running_cluster, running_patroni_site
from proofs.chaos.load import Load
from proofs.chaos.promises import Observed, broken_promises
from proofs.chaos.scenarios import ALL
from proofs.chaos.scenarios.leaders import PATRONI
from proofs.chaos.scenarios.outages import scenarios
from proofs.chaos.scenarios.scenario import AnySite, Scenario, Stage
from proofs.chaos.site import Site
from tests.servers.processes import CHECKOUT, NotAvailable

_STEADY_BEFORE, _STEADY_AFTER = 1.0, 1.5
_STEADY_AT_MOST = 20.0  # after a fault; more than any promise
_RECORDS_WITHIN_SECONDS = 20.0
_MAX_CLOCK_DIFFERENCE = 3.0
# More than any one takes.
_SCENARIO_SECONDS = 45.0
_PATRONI_SECONDS = 90.0
_FIGURES = CHECKOUT / "var" / "drill.txt"


@dataclass(frozen=True)
class Result:
    name: str
    seen: Observed | None = None  # None if it did not run
    broken: Sequence[str] = ()
    not_tested: str = ""  # why it did not run
    seconds: float = 0.0


def run(scenario: Scenario[AnySite], cluster: AnySite) -> Result:
    """The scenario, from a steady load before it to a steady load after it."""
    try:
        return _run(scenario, cluster)
    except Exception as error:  # noqa: BLE001 - the other scenarios still run
        return Result(scenario.name, broken=[f"the drill itself failed: {error!r}"])


def _run(scenario: Scenario[AnySite], cluster: AnySite) -> Result:
    started = time.monotonic()
    population = cluster.population
    before = cluster.issued()
    load = Load(population, cluster.connection_of)
    stage = Stage(cluster, load)
    stage.forbidden |= dict.fromkeys(population.bad, started)
    broken: list[str] = []
    with stage.afterwards:
        load.begin()
        try:
            load.wait_until_steady(_STEADY_BEFORE, _STEADY_AT_MOST)
            scenario.act(stage)
            load.wait_until_steady(_STEADY_AFTER, _STEADY_AT_MOST)
        except NotAvailable as reason:
            return Result(scenario.name, not_tested=str(reason))
        except Exception as error:  # noqa: BLE001 - the other scenarios still run
            broken.append(f"the scenario itself failed: {error!r}")
        finally:
            load.end()
        answers, issued = _verified(load.answers, cluster), _issued(cluster)
        times = (stage.began_at, stage.ended_at)
        stored = (issued, issued - before)
        seen = Observed(answers, population.honest, *times, *stored, stage.forbidden, stage.notes)
    broken += broken_promises(scenario.promise, seen)
    return Result(scenario.name, seen, broken, seconds=time.monotonic() - started)


def _issued(cluster: Site) -> frozenset[str]:
    """The stored ones, as soon as the database answers."""
    deadline = time.monotonic() + _RECORDS_WITHIN_SECONDS
    while True:
        try:
            return cluster.issued()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _verified(answers: Sequence[Answer], cluster: Site) -> list[Answer]:
    """The same answers; a token that a protected API would refuse is a fault."""
    published = httpx.get(f"{cluster.nodes[0].service.url}/.well-known/jwks.json", timeout=10)
    keys = jwt.PyJWKSet.from_dict(published.json())
    # The wall clock of this machine, at the times that answers have.
    ahead = time.time() - time.monotonic()
    issuer = cluster.balancer.ports.https_url
    return [
        replace(answer, fault=answer.fault or _fault_of(answer, keys, issuer, ahead))
        for answer in answers
    ]


def _fault_of(answer: Answer, keys: jwt.PyJWKSet, issuer: str, ahead: float) -> str:
    if not answer.token:
        return ""
    try:
        kid = jwt.get_unverified_header(answer.token)["kid"]
        claims = jwt.decode(
            answer.token,
            keys[kid],
            algorithms=["ES256"],
            issuer=issuer,
            options={"verify_aud": False},
            leeway=_MAX_CLOCK_DIFFERENCE,
        )
    except (jwt.InvalidTokenError, KeyError) as error:
        return f"a token that does not verify: {error!r}"
    late = abs(claims["iat"] - (answer.answered_at + ahead))
    limit = answer.seconds + _MAX_CLOCK_DIFFERENCE
    return f"a token with a date that is {late:.0f} s off" if late > limit else ""


def line_of(result: Result) -> str:
    name = f"{result.name:18}"
    if result.not_tested:
        return f"{name} NOT TESTED: {result.not_tested}"
    if result.seen is None:
        return f"{name} FAILED: {'; '.join(result.broken)}"
    seen = result.seen
    figures = (
        f"{len(seen.answers):6} answers, honest {_statuses(seen, is_honest=True)},"
        f" others {_statuses(seen, is_honest=False)},"
        f" slowest {seen.slowest:.1f} s, recovery {seen.recovery_seconds:.1f} s,"
        f" {len(seen.never_received)} stored as issued and never received,"
        f" {result.seconds:.0f} s"
    )
    problems = "".join(f"\n    FAILED: {text}" for text in result.broken)
    notes = "".join(f"\n    {text}" for text in seen.notes)
    return f"{name} {figures}{notes}{problems}"


def _statuses(seen: Observed, *, is_honest: bool) -> str:
    counts = Counter(a.status for a in seen.answers if (a.caller in seen.honest) is is_honest)
    return ", ".join(
        f"{count:,} {'without answer' if status == NO_ANSWER else f'x {status}'}"
        for status, count in sorted(counts.items())
    )


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
