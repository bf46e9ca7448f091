"""A short run with another seed each time; a service with a fault is found."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs.fuzz.__main__ import SETTINGS
from proofs.fuzz.corpus import read_inputs
from proofs.fuzz.planted import Planted, plant
from proofs.fuzz.run import Findings, Run, random_inputs
from tests.conftest import StartService
from tests.servers.processes import stopping
from tests.servers.service import CONFIGURATION, Service, start_service

INPUTS = 5_000
FAULTY = f"""
import runpy
globals().update(runpy.run_path({str(CONFIGURATION)!r}))
def post_worker_init(worker):
    from tokens.answers import response
    response.describe = lambda refused: "No \\N{{LATIN SMALL LETTER E WITH ACUTE}} is allowed here."
"""


@pytest.fixture
def node(service: StartService) -> Service:
    return service(**SETTINGS)


def run_of(node: Service, planted: Planted, failures: Path) -> Run:
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    return Run(node, planted, seed, failures)


def test_the_service_withstands_random_inputs(node: Service, tmp_path: Path) -> None:
    planted = plant(node.url, node.manage)
    run = run_of(node, planted, tmp_path / "failures.txt")
    rng = random.Random(run.findings.seed)  # noqa: S311 - a run must be repeatable
    found = run.run(random_inputs(rng, planted, INPUTS), INPUTS, minutes=4)
    assert found.failures == [], "\n".join(found.failures)
    assert (found.sent, found.canaries > 10, found.tokens > 100) == (INPUTS, True, True), found
    assert {200, 400, 401, 404, 405, 408} <= set(found.statuses)


def test_a_faulty_service_is_found_stored_without_credentials_and_found_again(
    node: Service, tmp_path: Path
) -> None:
    planted = plant(node.url, node.manage)
    (tmp_path / "faulty.py").write_text(FAULTY)
    stored, again = tmp_path / "stored.txt", tmp_path / "again.txt"
    node.stop()
    faulty = start_service(node.environment, node.log_file, tmp_path / "faulty.py")

    def found(inputs: Iterator, count: int, file: Path) -> Findings:  # type: ignore[type-arg]
        return run_of(faulty, planted, file).run(inputs, count, minutes=1)

    with stopping(faulty):
        inputs = random_inputs(random.Random(1), planted, 300)  # noqa: S311
        assert "the description" in "".join(found(inputs, 300, stored).failures)
        secrets = (planted.client_secret, planted.wrong_secret, planted.access_token)
        assert not any(secret in stored.read_bytes() for secret in secrets)
        replayed = list(read_inputs(stored, planted))
        failures = found(iter(replayed), len(replayed), again).failures
    assert "the description" in "".join(failures)
