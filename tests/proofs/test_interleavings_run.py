"""Random logins and changes on three nodes: every answer is that of a state in force meanwhile."""

import random
from pathlib import Path

import pytest

from proofs.interleavings.changes.registrar import KINDS
from proofs.interleavings.run import run
from tokens.metrics import ISSUED
from tokens.refusals.table import ProtocolReason

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.slow]

# In so many steps each fault that is put in on purpose is found (test_faults.py).
STEPS, SEED = 40_000, 1


def test_every_claim_holds_in_a_run_of_a_fixed_seed(tmp_path: Path) -> None:
    state = run(SEED, STEPS, tmp_path)
    assert [kind.name for kind in KINDS if state.changes[kind.name] < 5] == []
    assert state.outcomes[ISSUED] > STEPS / 50
    assert state.outcomes[ProtocolReason.TEMPORARILY_UNAVAILABLE] < STEPS / 50


def test_every_claim_holds_in_a_run_of_another_seed_each_time(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    run(seed, STEPS, tmp_path)
