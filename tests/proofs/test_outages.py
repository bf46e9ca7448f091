"""Short forms of two proofs: the storm after an outage, and protected APIs during one."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.server.overload import MAX_WAIT_SECONDS
from proofs.chaos.cluster import Cluster, running_cluster
from proofs.chaos.drill import run
from proofs.chaos.protected_apis import Api, Call, faults
from proofs.chaos.scenarios.outages import scenarios
from proofs.storm.simulation import Seen, simulate
from tokens.answers import pauses

SECONDS = 12


def storm(minutes: float) -> Seen:
    """As a run with a million: 250 s if they came one by one."""
    return simulate(clients=50_000, processes=1, per_second=200, minutes=minutes, seed=7)


@pytest.mark.long
def test_after_an_outage_all_clients_have_tokens_soon_and_none_waits_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pauses, "random", random.Random(7))  # noqa: S311 - no secret
    seen = storm(75)
    assert seen.served_at[8] < 600, "nine of ten"
    assert seen.waiting < 50, "the rest: when their batch runs"
    assert seen.slowest < MAX_WAIT_SECONDS + 0.1
    assert sum(seen.refused[minute] for minute in range(20, 75)) == 0, "no second storm"
    monkeypatch.setattr(pauses.Pauses, "next", lambda self, now: 5)
    constant = storm(3)
    assert seen.refused[2] < constant.refused[2] / 10


NOW = 1_000.0  # seconds of a clock that only goes forward


def test_an_outage_that_an_api_does_not_survive_is_found() -> None:
    api = Api(Path(), 0, lambda: None, "A", [(NOW + 50, NOW + 51)])  # type: ignore[arg-type,return-value]
    right = [Call(api, "honest", NOW, 200), Call(api, "honest", NOW + 50.5, 0)]
    right += [Call(api, "blocked", NOW, 200), Call(api, "blocked", NOW + 10, 401)]
    wrong = [Call(api, "honest", NOW, 503), Call(api, "blocked", NOW + 10, 200)]
    until = {"blocked": NOW + 10}
    assert faults(right, [api], until) == []
    assert faults([*right, *wrong], [api], until) == [
        "A answered an honest client with 503: 1 times",
        "A accepted blocked: 1 times",
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as started:
        yield started


@pytest.mark.processes
@pytest.mark.parametrize("number", range(3))
def test_protected_apis_go_on(cluster: Cluster, number: int) -> None:
    assert run(scenarios(SECONDS)[number], cluster).broken == []
