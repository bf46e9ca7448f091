"""Random logins and changes on three nodes: every answer is that of a state in force meanwhile."""

import random
from pathlib import Path

import pytest

from proofs.interleavings.run import RunFailed, run
from taxpayers.services import history
from tokens.metrics import ISSUED
from tokens.refusals.table import ProtocolReason
from tokens.store import postgresql_count

pytestmark = [*(pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.slow)]
STEPS = 10_000


def test_every_claim_holds_in_a_run_of_another_seed_each_time(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    state = run(seed, STEPS // 2, tmp_path)
    assert len(state.changes) > 25, "most kinds"
    assert state.outcomes[ISSUED] > STEPS / 100
    assert state.outcomes[ProtocolReason.TEMPORARILY_UNAVAILABLE] < STEPS / 100


def test_a_count_that_ignores_the_epoch_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that was made between the reading and the record of a login goes unnoticed."""
    checked = "AND c.epoch = sent.epoch"
    statement_of = postgresql_count._statement_of
    assert checked in statement_of((), has_several=False)
    without = lambda *of, **more: statement_of(*of, **more).replace(checked, "")  # noqa: E731
    monkeypatch.setattr(postgresql_count, "_statement_of", without)
    with pytest.raises(RunFailed, match="seed 2, step "):
        run(2, 2 * STEPS, tmp_path)


def test_a_decision_about_a_request_as_it_was_shown_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several persons decide, each about the request as they saw it when it was asked for."""
    monkeypatch.setattr(history, "lock_for_update", lambda request: request)
    with pytest.raises(RunFailed, match="what was declined is not approved afterwards"):
        run(9, STEPS // 2, tmp_path)
