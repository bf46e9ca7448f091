"""The logins in progress on all nodes: what each waits for, and what happens to it next."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError

from proofs.interleavings.logins.effects import Effects
from proofs.interleavings.logins.login import Login
from proofs.interleavings.logins.node import SimulatedNode, Waiting
from proofs.interleavings.logins.requests import next_request
from proofs.interleavings.state import RunState
from tokens.calls import Call, CallOfClient, TokenRevocation
from tokens.operations.login import EndedLogin, log_in
from tokens.operations.steps import LockedRead, advance, fail
from tokens.store import locked_clients
from tokens.store.lanes import take_batch

_MOST_ACTIVE = 24
_LOCKED, _STILL_LOCKED = object(), object()  # results of statements that skip, or wait


class Traffic:
    """Each method is one step of the run; it returns False if there is nothing to do."""

    def __init__(self, state: RunState, nodes: Sequence[SimulatedNode]) -> None:
        self._state = state
        self._nodes = nodes
        self._number = 0
        self.active: dict[int, Login] = {}
        self._effects = Effects(state)

    def arrive(self) -> bool:
        """A request arrives at a node."""
        if len(self.active) >= _MOST_ACTIVE:
            return False
        state, node = self._state, self._state.rng.choice(self._nodes)
        asked = next_request(state)
        state.time.off = node.off
        arrival, raw = asked.received(node.knowledge.clock.now())
        steps = log_in(node.knowledge, arrival, raw)
        self._number += 1
        login = Login(
            self._number,
            node.number,
            asked,
            asked.query,
            arrival,
            steps,
            state.step,
            state.time.now,
            node.off,
        )
        self.active[login.number] = login
        self._effects.arrive(login)
        self._go_on(login, advance(steps))
        return True

    def execute(self) -> bool:
        """One node executes one statement, for all of one kind that wait there."""
        waiting = [
            (node, kind) for node in self._nodes for kind, lane in node.lanes.items() if lane
        ]
        if not waiting:
            return False
        node, kind = self._state.rng.choice(waiting)
        self._execute(node, node.lanes[kind])
        return True

    def wait(self) -> bool:
        """A node executes the statement of one client that was locked by another session."""
        waiting = [(node, key) for node in self._nodes for key in node.locked_clients]
        if not waiting:
            return False
        node, key = self._state.rng.choice(waiting)
        lane = node.locked_clients[key]
        self._execute(node, lane, waits=True)
        if not lane:
            del node.locked_clients[key]
        return True

    def _execute(self, node: SimulatedNode, lane: deque[Waiting], *, waits: bool = False) -> None:
        batch: list[Any] = list(take_batch(lane))  # type: ignore[arg-type]  # as a lane
        for one, result in self._results(node, batch, waits=waits):
            if isinstance(result, DatabaseError):
                self._fail(one.login, result)
            elif result is _LOCKED:
                node.wait_for_client(one)
            elif result is _STILL_LOCKED:
                lane.append(one)
            elif self._state.rng.random() < 0.7:
                self._deliver(one.login, result)
            else:
                node.undelivered.append((one.login, result))

    def _results(
        self, node: SimulatedNode, batch: Sequence[Waiting], *, waits: bool
    ) -> list[tuple[Waiting, Any]]:
        """As the lanes do it: if a statement fails, each call is retried in its own statement."""
        try:
            results = node.execute([one.call for one in batch], waits=waits)
        except psycopg.errors.LockNotAvailable:
            # Nothing else of a login may wait for a client that is being changed.
            if not waits and not isinstance(batch[0].call, TokenRevocation):
                raise
            return [(one, _STILL_LOCKED) for one in batch]
        except psycopg.errors.NotNullViolation as error:
            if len(batch) > 1:
                return [found for one in batch for found in self._results(node, [one], waits=waits)]
            self._effects.refuse(batch[0].login, batch[0].call)
            return [(batch[0], DatabaseError(str(error)))]
        if not waits:
            results = [
                _LOCKED if _is_sent_again(one.call, result) else result
                for one, result in zip(batch, results, strict=True)
            ]
        for one, result in zip(batch, results, strict=True):
            if result is not _LOCKED:
                self._effects.execute(one.login, one.call, result)
        return list(zip(batch, results, strict=True))

    def deliver(self) -> bool:
        """A result reaches its login later than those of the same statement."""
        nodes = [node for node in self._nodes if node.undelivered]
        if not nodes:
            return False
        results = self._state.rng.choice(nodes).undelivered
        self._deliver(*results.pop(self._state.rng.randrange(len(results))))
        return True

    def lock(self) -> bool:
        """A login locks its client; while another session changes it, the login waits."""
        nodes = [node for node in self._nodes if node.wants_lock and node.locked is None]
        if not nodes:
            return False
        node = self._state.rng.choice(nodes)
        login, read = node.wants_lock.pop(0)
        try:
            reading = node.lock(read.query)
        except OperationalError:
            node.wants_lock.append((login, read))
            return True
        self._effects.execute(login, read.query, reading)
        self._state.time.off = node.off
        following = advance(login.steps, reading)
        if isinstance(following, EndedLogin | LockedRead):
            node.finish_lock()
            self._go_on(login, following)
        else:
            login.add(self._state.step, "asks under the lock", following)
            node.locked = Waiting(following, login)
        return True

    def finish_lock(self) -> bool:
        """A login that has locked its client is recorded, and committed."""
        nodes = [node for node in self._nodes if node.locked is not None]
        if not nodes:
            return False
        node = self._state.rng.choice(nodes)
        assert node.locked is not None
        login, call = node.locked.login, node.locked.call
        try:
            result = node.finish_lock(call)
        except psycopg.errors.NotNullViolation as error:
            self._effects.refuse(login, call)
            self._fail(login, DatabaseError(str(error)))
        else:
            self._effects.execute(login, call, result)
            self._deliver(login, result)
        return True

    def restart(self, node: SimulatedNode) -> None:
        """Its process ends; what was under way there gets no answer."""
        for login in node.stop():
            del self.active[login.number]
        self._effects.forget(node.number)
        node.start()

    def finish(self) -> None:
        """Until every login has ended."""
        while self.active:
            # First what frees a client: others wait for it, and would ask again for ever.
            steps = (self.finish_lock, self.execute, self.wait, self.deliver, self.lock)
            assert any(step() for step in steps)

    def _fail(self, login: Login, error: DatabaseError) -> None:
        self._state.time.off = self._nodes[login.node].off
        self._go_on(login, fail(login.steps, error))

    def _deliver(self, login: Login, result: Any) -> None:
        self._state.time.off = self._nodes[login.node].off
        self._go_on(login, advance(login.steps, result))

    def _go_on(self, login: Login, step: Call | LockedRead | EndedLogin) -> None:
        login.add(self._state.step, "goes on with", step)
        if isinstance(step, EndedLogin):
            self._end(login, step)
            return
        node = self._nodes[login.node]
        if isinstance(step, LockedRead):
            node.wants_lock.append((login, step))
        else:
            node.add(Waiting(step, login))

    def _end(self, login: Login, ended: EndedLogin) -> None:
        login.ended = ended
        del self.active[login.number]
        self._effects.end(login)


def _is_sent_again(call: Call, result: Any) -> bool:
    return isinstance(call, CallOfClient) and locked_clients.may_be_locked(result)
