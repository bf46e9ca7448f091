"""A whole run: three nodes, so many steps, and a random generator that chooses each of them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from proofs.interleavings.changes.registrar import Registrar, in_use
from proofs.interleavings.changes.wholesale import CREATE_COPIES, NO_AUTOVACUUM
from proofs.interleavings.logins.node import SimulatedNode
from proofs.interleavings.logins.traffic import Traffic
from proofs.interleavings.oracle.claims import ClaimBroken, adopt_counters, check_tables
from proofs.interleavings.oracle.history import History
from proofs.interleavings.oracle.registry import read_registry
from proofs.interleavings.simulated_time import (
    CREATE,
    LOCK_TIMEOUT,
    SEARCH_PATH,
    SHOW_TIME,
    SimulatedTime,
)
from proofs.interleavings.state import RunState
from proofs.interleavings.world import SCOPES, Credentials, populate
from tests.support.databases import present_url
from tokens.keys.signer import clear_key_ring_cache, current_key_ring
from tokens.login_settings import login_settings
from tokens.status_lists.ending import end_indexes

# How far the clock of each node is from the database's.
_CLOCKS = (timedelta(0), timedelta(seconds=1.5), timedelta(seconds=-1.5))
_SCOPES = {name: {"description": name, "audience": name} for name in SCOPES}


class RunFailed(AssertionError):
    """A claim does not hold; the message names the seed and the step, and what happened."""


def run(seed: int, steps: int, folder: Path) -> RunState:
    """Runs so many steps in the present database, migrated and empty. Raises RunFailed."""
    with ExitStack() as stack:
        logging.disable(logging.CRITICAL)  # each 503 is logged with its cause
        stack.callback(logging.disable, logging.NOTSET)
        rng = Random(seed)  # noqa: S311 - a run must be repeatable
        time = SimulatedTime()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        set_timeout = f"SET LOCAL lock_timeout TO '{LOCK_TIMEOUT}'"
        patch.setattr("tokens.status_lists.ending._LOCK_TIMEOUT", set_timeout)
        # New ids and secrets come from the generator of the run.
        random_bits = SimpleNamespace(randbits=rng.getrandbits)
        patch.setattr("taxpayers.credentials.secrets", random_bits)
        time.put_in_force(patch)
        stack.enter_context(override_settings(SCOPES=_SCOPES))
        login_settings.cache_clear()
        state = _state(rng, time)
        nodes = [
            stack.enter_context(closing(SimulatedNode(number, present_url(), folder, off, time)))
            for number, off in enumerate(_CLOCKS)
        ]
        registrar = stack.enter_context(closing(Registrar(state)))
        keeper = stack.enter_context(closing(connection.copy()))
        scheduler = Scheduler(state, nodes, registrar, keeper)
        try:
            adopt_counters(state.limits, state.history.present)
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
        populate(credentials, time.now)
        cursor.execute(CREATE_COPIES + NO_AUTOVACUUM)
    clear_key_ring_cache()
    current_key_ring(time.now)
    return RunState(rng, time, credentials, History(read_registry()))


_CHECK_TABLES_EVERY = 2000  # steps
_END_INDEXES_EVERY = 20
_JUMPS = (0.5, 2.5, 20, 61, 61, 61, 301, 3601)  # seconds


class Scheduler:
    """One for each run; `keeper` is the connection that keeps the status lists."""

    def __init__(
        self,
        state: RunState,
        nodes: Sequence[SimulatedNode],
        registrar: Registrar,
        keeper: BaseDatabaseWrapper,
    ) -> None:
        self._state = state
        self._nodes = nodes
        self._registrar = registrar
        self._keeper = keeper
        with keeper.cursor() as cursor:
            cursor.execute(f"SET search_path TO {SEARCH_PATH}")
        self.traffic = Traffic(state, nodes)
        actions: dict[Callable[[], bool], float] = {
            self.traffic.arrive: 30,
            self.traffic.execute: 40,
            self.traffic.wait: 10,
            self.traffic.deliver: 14,
            self.traffic.lock: 8,
            self.traffic.finish_lock: 8,
            registrar.change: 5,
            registrar.end: 5,
            registrar.take_copy: 0.05,
            self._tick: 4,
            self._jump: 0.3,
            self._disturb_a_node: 0.3,
        }
        self._actions, self._weights = list(actions), list(accumulate(actions.values()))

    def run(self, steps: int) -> None:
        """Raises ClaimBroken with the first claim that does not hold."""
        state = self._state
        for state.step in range(1, steps + 1):
            while not state.rng.choices(self._actions, cum_weights=self._weights)[0]():
                pass
            if state.step % _END_INDEXES_EVERY == 0:
                self._end_indexes()
            if state.step % _CHECK_TABLES_EVERY == 0:
                self._check_tables()
        while self._registrar.end():
            pass  # so that no session waits for what it has locked
        self.traffic.finish()
        self._check_tables()

    def _check_tables(self) -> None:
        state = self._state
        check_tables(state.stored, state.limits, state.history.present)
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE login_events")
        state.stored.clear()
        active = [login.arrived_in for login in self.traffic.active.values()]
        state.history.forget_before(min(active, default=state.step))

    def _end_indexes(self) -> None:
        """As twice a second in each process of the service."""
        now = self._state.time.now
        with in_use(self._keeper), self._keeper.cursor() as cursor:
            cursor.execute(SHOW_TIME, [now.isoformat()])
            end_indexes(now)
        self._state.renewed_in = self._state.step
        # The index of a client that a session has locked ends later.
        if self._registrar.is_idle and not any(node.locked for node in self._nodes):
            self._state.tokens.check(self._state.history.present, now)

    def _tick(self) -> bool:
        self._state.time.now += timedelta(milliseconds=self._state.rng.randrange(1, 50))
        return True

    def _jump(self) -> bool:
        self._state.time.now += timedelta(seconds=self._state.rng.choice(_JUMPS))
        return True

    def _disturb_a_node(self) -> bool:
        """It restarts, or its local facts are deleted or replaced by older ones."""
        node = self._state.rng.choice(self._nodes)
        disturb = self._state.rng.choice(
            (node.copy_facts, node.delete_facts, node.put_copy_back, lambda: None)
        )
        disturb()
        if self._state.rng.random() < 0.6:
            self.traffic.restart(node)
        return True
