"""A whole run: a database with a few clients, three nodes, and so many random steps."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from proofs.interleavings.changes.registrar import Registrar
from proofs.interleavings.changes.wholesale import CREATE_COPIES, NO_AUTOVACUUM
from proofs.interleavings.failure import ClaimBroken
from proofs.interleavings.list_keeper import ListKeeper
from proofs.interleavings.logins.node import SimulatedNode
from proofs.interleavings.oracle.claims import adopt_counters
from proofs.interleavings.oracle.history import History
from proofs.interleavings.oracle.registry import read_registry
from proofs.interleavings.scheduler import Scheduler
from proofs.interleavings.simulated_time import CREATE, SimulatedTime
from proofs.interleavings.state import RunState
from proofs.interleavings.world import CODES, SCOPES, Credentials, populate
from tests.support.databases import present_url
from tokens.keys.signer import clear_key_ring_cache, current_key_ring
from tokens.login_settings import login_settings

# How far the clock of each node is from the database's.
_CLOCKS = (timedelta(0), timedelta(seconds=1.5), timedelta(seconds=-1.5))
_SCOPES = {name: {"description": name, "audience": name} for name in SCOPES}


class RunFailed(AssertionError):
    """A claim does not hold; the message names the seed and the step, and what happened."""


def run(seed: int, steps: int, folder: Path) -> RunState:
    """Runs so many steps in the present database, which must be migrated and empty.

    Raises RunFailed.
    """
    with ExitStack() as stack:
        logging.disable(logging.CRITICAL)  # each 503 is logged with its cause
        stack.callback(logging.disable, logging.NOTSET)
        rng = Random(seed)  # noqa: S311 - a run must be repeatable
        time = SimulatedTime()
        stack.enter_context(_deterministic(rng))
        stack.enter_context(time.in_force())
        stack.enter_context(override_settings(SCOPES=_SCOPES))
        login_settings.cache_clear()
        state = _state(rng, time)
        nodes = [
            stack.enter_context(closing(SimulatedNode(number, present_url(), folder, off, time)))
            for number, off in enumerate(_CLOCKS)
        ]
        registrar = stack.enter_context(closing(Registrar(state)))
        keeper = stack.enter_context(closing(ListKeeper(time)))
        scheduler = Scheduler(state, nodes, registrar, keeper)
        try:
            adopt_counters(state.limits, state.last_uses, state.history.present)
            scheduler.run(steps)
        except (ClaimBroken, psycopg.Error) as error:
            changes = "\n    ".join(state.latest_changes)
            raise RunFailed(
                f"seed {seed}, step {state.step}: {error}\n  latest changes:\n    {changes}"
            ) from error
        return state


def _state(rng: Random, time: SimulatedTime) -> RunState:
    credentials = Credentials()
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
        for code in CODES:
            cursor.execute(
                "INSERT INTO permission_codes (code, description) VALUES (%s, %s)"
                " ON CONFLICT DO NOTHING",
                (code, code),
            )
    populate(credentials, time.now)
    with connection.cursor() as cursor:
        cursor.execute(CREATE_COPIES)
        cursor.execute(NO_AUTOVACUUM)
    clear_key_ring_cache()
    current_key_ring(time.now)
    return RunState(rng, time, credentials, History(read_registry()))


@contextmanager
def _deterministic(rng: Random) -> Iterator[None]:
    """New ids and secrets come from the generator of the run."""
    with pytest.MonkeyPatch.context() as patch:
        source = SimpleNamespace(randbits=rng.getrandbits)
        patch.setattr("taxpayers.credentials.secrets", source)
        yield
