"""Random logins and changes on three nodes: every answer is that of a state in force meanwhile."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from django.db import connection

from proofs.interleavings.changes.registrar import KINDS
from proofs.interleavings.run import RunFailed, run
from taxpayers.facts.epochs import postgresql as epochs
from taxpayers.facts.epochs.row import trigger_name
from taxpayers.facts.local import SharedFacts
from tests.conftest import MIGRATED
from tests.servers.processes import CHECKOUT, completed
from tests.servers.service import clean_environment
from tokens.metrics import ISSUED
from tokens.operations import login
from tokens.refusals.table import ProtocolReason
from tokens.store import lanes, locked_clients, postgresql, postgresql_buckets

# In so many steps each fault that is put in on purpose is found.
STEPS, SEED = 40_000, 2
Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], object]


def on_postgresql(test: Callable[..., None]) -> Callable[..., None]:
    for mark in (pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.slow):
        test = mark(test)
    return test


@on_postgresql
def test_every_claim_holds_in_a_run_of_a_fixed_seed(tmp_path: Path) -> None:
    state = run(SEED, STEPS, tmp_path)
    assert [kind.name for kind in KINDS if state.changes[kind.name] < 5] == []
    assert state.outcomes[ISSUED] > STEPS / 50
    assert state.outcomes[ProtocolReason.TEMPORARILY_UNAVAILABLE] < STEPS / 50


@on_postgresql
def test_every_claim_holds_in_a_run_of_another_seed_each_time(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    run(seed, STEPS, tmp_path)


@on_postgresql
def test_a_seed_repeats_a_run(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    digests = []
    for name in ("first", "second"):  # with local facts of its own
        (tmp_path / name).mkdir()
        digests.append(run(3, 1000, tmp_path / name).digest)
        pytestconfig.stash[MIGRATED].restore()
    assert digests[0] == digests[1]


@pytest.mark.processes
@pytest.mark.slow
def test_the_command_runs_on_a_database_of_its_own() -> None:
    command = [sys.executable, "-m", "proofs.interleavings", "--steps", "500", "--seed", "3"]
    done = completed(
        command,
        cwd=CHECKOUT,
        env=clean_environment(),
    )
    assert done.stdout.startswith("seed 3, 500 steps\nevery claim holds"), done.stdout + done.stderr


# --- Faults that are put in on purpose ------------------------------------------------------------


def in_a_statement(module: ModuleType, statement: str, old: str, new: str) -> Fault:
    def put_in(patch: Patch) -> None:
        text = getattr(module, statement)
        assert old in text
        patch.setattr(module, statement, text.replace(old, new))

    return put_in


def sql(statement: str) -> Fault:
    return lambda _patch: connection.cursor().execute(statement)


def a_decision_repeated_from_the_old_facts(patch: Patch) -> None:
    """The reload is skipped."""
    read = login._read

    def read_once(one, start):  # type: ignore[no-untyped-def]
        known = one.node.recall(one.query)
        return known or (yield from read(one, start))

    patch.setattr(login, "_read", read_once)


def local_facts_that_ignore_the_secret(patch: Patch) -> None:
    def name(_facts: SharedFacts, query: object) -> bytes:
        return f"{query.client_id} {query.on_behalf_of}".encode()  # type: ignore[attr-defined]

    patch.setattr(SharedFacts, "_name", name)


def epochs_that_count() -> Fault:
    """A backup brings their values back."""
    body = epochs._FUNCTIONS["renew_epochs"].replace("epoch = DEFAULT", "epoch = epoch + 1")
    return sql(f"CREATE OR REPLACE FUNCTION renew_epochs{body}")


def a_dropped_trigger(table: str, event: str) -> Fault:
    return sql(f"DROP TRIGGER {trigger_name(table, event)} ON {table}")


# Each with the changes without which it has no consequence: these are made often.
FAULTS: dict[str, tuple[Fault, list[str]]] = {
    "a count that ignores the epoch": (
        in_a_statement(postgresql, "_COUNT", "AND o.epoch = sent.epoch", ""),
        [],
    ),
    "a count that waits for locked rows": (
        in_a_statement(postgresql, "_COUNT", " SKIP LOCKED", ""),
        [],
    ),
    # To decide them again in the hope that the lock is gone: some never meet it free.
    "logins_that_are_sent_away_from_a_locked_client": (
        lambda patch: patch.setattr(locked_clients, "may_be_locked", lambda result: False),
        [],
    ),
    "a count that ignores the limit": (
        in_a_statement(postgresql, "_COUNT", 'c.used < locked."limit"', "true"),
        [],
    ),
    "windows that never end": (
        in_a_statement(postgresql, "_COUNT", postgresql._IS_OPEN, "true"),
        [],
    ),
    "tokens whose index is not confirmed": (
        in_a_statement(postgresql, "_COUNT", postgresql._HAS_INDEX, "true"),
        ["restore_backup"],
    ),
    "changes that no list learns of": (
        sql("DROP TRIGGER then_check_status_after_update_on_client_usage ON client_usage"),
        [],
    ),
    "rejected requests that are not counted": (
        in_a_statement(postgresql_buckets, "_COUNT_REJECTIONS", "b.failures + 1", "b.failures"),
        [],
    ),
    "several failures of a caller in a batch": (
        lambda patch: patch.setattr(lanes, "rows_of", lambda call: ()),
        [],
    ),
    "a decision repeated from the old facts": (a_decision_repeated_from_the_old_facts, []),
    "local facts that ignore the secret": (local_facts_that_ignore_the_secret, []),
    "epochs that count": (epochs_that_count(), ["restore_backup", "block", "unblock"]),
    "a secret whose change no node learns of": (
        a_dropped_trigger("credentials", "UPDATE"),
        ["set_secret"],
    ),
    "a permission whose end no node learns of": (
        a_dropped_trigger("granted_permissions", "DELETE"),
        ["delete_permission", "grant_permission"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@on_postgresql
def test_the_interleavings_find(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    put_in, often = FAULTS[name]
    put_in(monkeypatch)
    with pytest.raises(RunFailed, match=f"seed {SEED}, step "):
        run(SEED, STEPS, tmp_path, often)
