"""`python -m proofs.interleavings`: a long run, and one that failed, by its seed."""

import subprocess
import sys

import pytest

from tests.servers.processes import CHECKOUT
from tests.servers.service import clean_environment

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def digest_of_a_run(hash_seed: str) -> str:
    command = [sys.executable, "-m", "proofs.interleavings", "--steps", "2000", "--seed", "3"]
    environment = clean_environment() | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 3, 2000 steps\n")
    return next(line for line in done.stdout.splitlines() if line.startswith("digest "))


def test_a_seed_repeats_a_run_in_another_process() -> None:
    assert digest_of_a_run("1") == digest_of_a_run("2")
