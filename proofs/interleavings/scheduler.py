"""Chooses by a random generator what happens next: a login, a statement, a change, or time."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import accumulate

from django.db import connection

from proofs.interleavings.changes.registrar import Registrar
from proofs.interleavings.list_keeper import ListKeeper
from proofs.interleavings.logins.node import SimulatedNode
from proofs.interleavings.logins.traffic import Traffic
from proofs.interleavings.oracle.claims import check_tables
from proofs.interleavings.state import RunState

_CHECK_TABLES_EVERY = 2000  # steps
_END_INDEXES_EVERY = 20
_JUMPS = (0.5, 2.5, 20, 61, 61, 61, 301, 3601)  # seconds


class Scheduler:
    """One for each run."""

    def __init__(
        self,
        state: RunState,
        nodes: Sequence[SimulatedNode],
        registrar: Registrar,
        keeper: ListKeeper,
    ) -> None:
        self._state = state
        self._nodes = nodes
        self._registrar = registrar
        self._keeper = keeper
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
        check_tables(state.stored, state.limits, state.last_uses, state.history.present)
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE login_events")
        state.stored.clear()
        active = [login.arrived_in for login in self.traffic.active.values()]
        state.history.forget_before(min(active, default=state.step))

    def _end_indexes(self) -> None:
        self._keeper.end_indexes()
        self._state.renewed_in = self._state.step
        # The index of a client that a session has locked ends later.
        if self._registrar.is_idle and not any(node.locked for node in self._nodes):
            self._state.tokens.check(self._state.history.present, self._state.time.now)

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
