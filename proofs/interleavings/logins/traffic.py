"""The logins in progress on all nodes: what each waits for, and what happens to it next."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError

from proofs.interleavings.logins.effects import Effects
from proofs.interleavings.logins.login import Asked, Login
from proofs.interleavings.logins.node import SimulatedNode
from proofs.interleavings.oracle.registry import Registry
from proofs.interleavings.state import RunState
from proofs.interleavings.world import SCOPES, UNKNOWN, Credentials
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import SystemUser
from tests.client_auth.key_erp import KeyPair
from tokens.calls import Call, CallOfClient, TokenRevocation
from tokens.operations.login import EndedLogin, log_in
from tokens.operations.steps import LockedRead, advance, fail
from tokens.store.lanes import take_batch
from tokens.store.locked_clients import may_be_locked

_SCOPES = (*[""] * 10, *[SCOPES[0]] * 6, *SCOPES, *[" ".join(SCOPES)] * 3, "UnknownAPI")

# How often a request is one of the latest again: their facts are those that nodes remember.
_REPEATS, _REPEATS_AFTER_CHANGE, _SHORTLY_AFTER = 0.6, 0.85, 20  # the last one: steps


def next_request(state: RunState) -> Asked:
    """One that was sent a moment ago, most of all after a change, or another one."""
    is_shortly_after = state.step - state.history.changed_in < _SHORTLY_AFTER
    repeats = _REPEATS_AFTER_CHANGE if is_shortly_after else _REPEATS
    if state.latest and state.rng.random() < repeats:
        return replace(state.rng.choice(state.latest), address=_address(state.rng))
    asked = _random_request(state.rng, state.history.present, state.credentials, state.time.now)
    state.latest.append(asked)
    return asked


def _random_request(
    rng: Random, registry: Registry, credentials: Credentials, now: datetime
) -> Asked:
    """Of a client that the registry knows, or of an unknown one."""
    client = _client(rng, registry, now)
    credential: str | KeyPair
    client_id, credential = credentials.unknown
    if client and rng.random() < 0.97:
        client_id = client.client_id
        owner = client if rng.random() < 0.97 else rng.choice(registry.system_users)
        credential = credentials.choose(rng, registry, owner.id, now)
    return Asked(
        client_id,
        credential,
        _represented(rng, registry, client),
        rng.choice(_SCOPES),
        _address(rng),
        "password" if rng.random() < 0.01 else "client_credentials",
    )


def _client(rng: Random, registry: Registry, now: datetime) -> SystemUser | None:
    """Mostly one that has a secret."""
    owners = {row.system_user_id for row in registry.credentials if row.is_live(now)}
    able = [row for row in registry.system_users if row.id in owners]
    rows = able if able and rng.random() < 0.9 else registry.system_users
    return rng.choice(rows) if rows else None


def _represented(rng: Random, registry: Registry, client: SystemUser | None) -> TaxpayerId | None:
    """Mostly a taxpayer that granted something, if the client is one of an intermediary."""
    roles = [
        r.id for r in registry.intermediaries if client and r.taxpayer_id == client.taxpayer_id
    ]
    granted = [p.taxpayer_id for p in registry.granted_permissions if p.intermediary_id in roles]
    if rng.random() < (0.35 if granted else 0.8):
        return None
    if rng.random() < 0.03 or not registry.taxpayers:
        return UNKNOWN
    if granted and rng.random() < 0.65:
        return registry.taxpayer(rng.choice(granted)).identifier
    return rng.choice(registry.taxpayers).identifier


def _address(rng: Random) -> str:
    if rng.random() < 0.1:
        return f"10.9.9.{rng.randrange(3)}"  # callers that fail often
    return f"10.1.{rng.randrange(16)}.{rng.randrange(250)}"


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
        if len(self.active) >= _MOST_ACTIVE:
            return False
        state, node = self._state, self._state.rng.choice(self._nodes)
        asked = next_request(state)
        state.time.off = node.off
        arrival, raw = asked.received(node.knowledge.clock.now())
        steps = log_in(node.knowledge, arrival, raw)
        self._number += 1
        when = (state.step, state.time.now, node.off)
        login = Login(self._number, node.number, asked, asked.query, arrival, steps, *when)
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

    def _execute(self, node: SimulatedNode, lane: deque[Login], *, waits: bool = False) -> None:
        batch: list[Any] = list(take_batch(lane))  # type: ignore[arg-type]  # as a lane
        for one, result in self._results(node, batch, waits=waits):
            if result is _LOCKED:
                node.wait_for_client(one)
            elif result is _STILL_LOCKED:
                lane.append(one)
            elif isinstance(result, DatabaseError) or self._state.rng.random() < 0.7:
                self._deliver(one, result)
            else:
                node.undelivered.append((one, result))

    def _results(
        self, node: SimulatedNode, batch: Sequence[Login], *, waits: bool
    ) -> list[tuple[Login, Any]]:
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
            self._effects.refuse(batch[0])
            return [(batch[0], DatabaseError(str(error)))]
        found = []
        for one, result in zip(batch, results, strict=True):
            is_sent_again = isinstance(one.call, CallOfClient) and may_be_locked(result)
            if is_sent_again and not waits:
                found.append((one, _LOCKED))
            else:
                self._effects.execute(one, one.call, result)
                found.append((one, result))
        return found

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
            login.call, node.locked = following, login
        return True

    def finish_lock(self) -> bool:
        """A login that has locked its client is recorded, and committed."""
        nodes = [node for node in self._nodes if node.locked is not None]
        if not nodes:
            return False
        node = self._state.rng.choice(nodes)
        login = node.locked
        assert login is not None
        try:
            result = node.finish_lock(login.call)
        except psycopg.errors.NotNullViolation as error:
            self._effects.refuse(login)
            result = DatabaseError(str(error))
        else:
            self._effects.execute(login, login.call, result)
        self._deliver(login, result)
        return True

    def restart(self, node: SimulatedNode) -> None:
        """Its process ends; what was under way there gets no answer."""
        for login in node.stop():
            del self.active[login.number]
        self._effects.forget(node.number)
        node.start()

    def finish(self) -> None:
        while self.active:
            # First what frees a client: others wait for it, and would ask again for ever.
            steps = (self.finish_lock, self.execute, self.wait, self.deliver, self.lock)
            assert any(step() for step in steps)

    def _deliver(self, login: Login, result: Any) -> None:
        self._state.time.off = self._nodes[login.node].off
        go_on = fail if isinstance(result, DatabaseError) else advance
        self._go_on(login, go_on(login.steps, result))

    def _go_on(self, login: Login, step: Call | LockedRead | EndedLogin) -> None:
        login.add(self._state.step, "goes on with", step)
        node = self._nodes[login.node]
        if isinstance(step, EndedLogin):
            login.ended = step
            del self.active[login.number]
            self._effects.end(login)
        elif isinstance(step, LockedRead):
            node.wants_lock.append((login, step))
        else:
            login.call = step
            node.add(login)
