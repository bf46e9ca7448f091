"""The logins in progress on all nodes: what each waits for, and what happens to it next."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError

from taxpayers.facts.values import FactsQuery, Reading
from tests.interleavings.failure import ClaimBroken
from tests.interleavings.logins.login import Login
from tests.interleavings.logins.node import SimulatedNode, Waiting
from tests.interleavings.logins.requests import next_request
from tests.interleavings.oracle.claims import (
    MAX_CLOCK_ERROR,
    check_answer,
    check_recent,
    check_too_late,
    note_use,
)
from tests.interleavings.state import RunState
from tokens.endpoint.login import EndedLogin, LockedRead, advance, fail, log_in
from tokens.login_events.events import CountedLogin, FailedLogin, Write, event_of
from tokens.login_events.lanes import take_batch
from tokens.login_events.store import Call
from tokens.rate_limits.throttle import Throttle

_MOST_ACTIVE = 24


class Traffic:
    """Each method is one step of the run; it returns False if there is nothing to do."""

    def __init__(self, state: RunState, nodes: Sequence[SimulatedNode]) -> None:
        self._state = state
        self._nodes = nodes
        self._number = 0
        self.active: dict[int, Login] = {}
        # Until when each node may repeat a 429: the callers that were denied there.
        self._denied: dict[tuple[int, Hashable], datetime] = {}

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
        )
        self.active[login.number] = login
        if any(until > arrival.at for until in self._denials_of(login)):
            login.may_be_limited = "denied before, and remembered by this node"
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
        batch: list[Any] = list(take_batch(node.lanes[kind]))  # type: ignore[arg-type]  # as a lane
        for one, result in self._results(node, batch):
            if isinstance(result, DatabaseError):
                self._fail(one.login, result)
            elif self._state.rng.random() < 0.7:
                self._deliver(one.login, result)
            else:
                node.undelivered.append((one.login, result))
        return True

    def _results(self, node: SimulatedNode, batch: Sequence[Waiting]) -> list[tuple[Waiting, Any]]:
        """As the lanes do it: if a statement fails, each call goes alone."""
        try:
            results = node.execute([one.call for one in batch])
        except psycopg.errors.NotNullViolation as error:
            if len(batch) > 1:
                return [result for one in batch for result in self._results(node, [one])]
            login, call = batch[0].login, batch[0].call
            assert isinstance(call, Write)
            check_too_late(event_of(call), self._state.time.now)
            login.may_be_unavailable = "its record came too late"
            return [(batch[0], DatabaseError(str(error)))]
        for one, result in zip(batch, results, strict=True):
            self._note(one.login, one.call, result)
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
        """A login locks its client; if somebody changes it, it tries later or gets a 503."""
        nodes = [node for node in self._nodes if node.wants_lock and node.locked is None]
        if not nodes:
            return False
        node = self._state.rng.choice(nodes)
        login, read = node.wants_lock.pop(0)
        try:
            reading = node.lock(read.query)
        except OperationalError as error:
            if self._state.rng.random() < 0.5:
                node.wants_lock.append((login, read))
            else:
                login.may_be_unavailable = "somebody else had locked its client"
                self._fail(login, error)
            return True
        self._note(login, read.query, reading)
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
            assert isinstance(call, Write)
            check_too_late(event_of(call), self._state.time.now)
            login.may_be_unavailable = "its record came too late"
            self._fail(login, DatabaseError(str(error)))
        else:
            self._note(login, call, result)
            self._deliver(login, result)
        return True

    def restart(self, node: SimulatedNode) -> None:
        """Its process ends; nobody gets an answer of what was under way there."""
        for login in node.stop():
            del self.active[login.number]
        for key in [key for key in self._denied if key[0] == node.number]:
            del self._denied[key]
        node.start()

    def finish(self) -> None:
        """Until every login has ended."""
        while self.active:
            steps = (self.execute, self.deliver, self.lock, self.finish_lock)
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
            node.lanes[type(step)].append(Waiting(step, login))

    def _note(self, login: Login, call: Call, result: Any) -> None:
        """What was executed: the models follow, and what it may mean for the answer."""
        state = self._state
        login.add(state.step, "the result is", result)
        try:
            if isinstance(call, FactsQuery):
                self._note_reading(login, result)
                return
            login.may_be_limited = ""
            if isinstance(call, CountedLogin):
                if result is None:
                    return
                state.limits.count(call, self._limit(call.system_user_id), result, state.time.now)
                note_use(call, state.limits, state.last_uses)
            elif isinstance(call, FailedLogin):
                state.limits.fail(call, result, state.time.now)
                if result is not None:
                    login.may_be_limited = "it has to wait after failures"
                    self._deny(login, result, login.asked.address)
                    return
        except ClaimBroken as broken:
            raise ClaimBroken(f"{broken}\n{login}") from None
        login.recorded.append(call)
        event = event_of(call)
        state.stored[event.id] = event
        check_recent(event, state.time.now)

    def _note_reading(self, login: Login, reading: Reading) -> None:
        state = self._state
        facts = state.history.present.facts(login.query)
        full = facts and state.limits.retry_at(
            facts.client.id, facts.client.logins_per_minute, state.time.now
        )
        login.may_be_limited = "its window is full" if full else ""
        if full and facts:
            self._deny(login, Throttle(full, facts.client.logins_per_minute), "")

    def _deny(self, login: Login, throttle: Throttle, address: str) -> None:
        self._denied[login.node, (login.query.client_id, login.query.hashed_secret, address)] = (
            throttle.retry_at
        )

    def _denials_of(self, login: Login) -> list[datetime]:
        client_id, hashed = login.query.client_id, login.query.hashed_secret
        keys = [(login.node, (client_id, hashed, of)) for of in ("", login.asked.address)]
        return [self._denied[key] for key in keys if key in self._denied]

    def _limit(self, client: int) -> int:
        rows = self._state.history.present.system_users
        return next((row.logins_per_minute for row in rows if row.id == client), -1)

    def _end(self, login: Login, ended: EndedLogin) -> None:
        state = self._state
        login.ended = ended
        if state.time.now - login.arrived_at > MAX_CLOCK_ERROR:
            login.may_be_unavailable = "more time passed than a node's clock may be off"
        try:
            check_answer(login, state.history)
        except ClaimBroken as broken:
            raise ClaimBroken(f"{broken}\n{login}") from None
        state.outcomes[ended.outcome] += 1
        state.note(login.number, login.node, ended.outcome)
        del self.active[login.number]
