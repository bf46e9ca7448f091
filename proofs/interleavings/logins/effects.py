"""What a statement of a login changes: the models follow, and it shows what may be answered."""

from collections.abc import Hashable
from datetime import datetime
from typing import Any

from proofs.interleavings.logins.login import Login
from proofs.interleavings.oracle.claims import (
    MAX_CLOCK_ERROR,
    ClaimBroken,
    check_answer,
    check_key,
    check_recent,
    check_too_late,
    is_recent,
)
from proofs.interleavings.state import RunState
from taxpayers.facts.values import FactsQuery
from tokens.calls import Call, CountedLogin, FailedLogin, TakeStatusIndex, TokenRevocation, Write
from tokens.metrics import ISSUED
from tokens.rate_limits.quota import Quota
from tokens.refusals.table import ProtocolReason

_UNDER_WAY = 5  # logins of one client at the same moment: seldom more


class Effects:
    """One for each run. Raises ClaimBroken, with what happened to the login."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        # Until when each node may repeat a 429: the callers that were denied there.
        self._denied: dict[tuple[int, Hashable], datetime] = {}

    def arrive(self, login: Login) -> None:
        keys = [(login.node, _caller(login, of)) for of in ("", login.asked.address)]
        if any(self._denied[key] > login.arrival.at for key in keys if key in self._denied):
            login.may_be_limited = "denied before, and remembered by this node"

    def execute(self, login: Login, call: Call, result: Any) -> None:
        login.add(self._state.step, "the result is", result)
        try:
            if isinstance(call, TakeStatusIndex | TokenRevocation):
                self._state.renewed_in = self._state.step
            elif isinstance(call, FactsQuery):
                self._read(login)
            elif isinstance(call, Write) and self._is_stored(login, call, result):
                login.recorded.append(call)
                login.recorded_in = self._state.step
                self._state.stored[call.event.id] = call.event
                check_recent(call.event, self._state.time.now)
        except ClaimBroken as broken:
            raise ClaimBroken(f"{broken}\n{login}") from None

    def refuse(self, login: Login) -> None:
        """The database refused its record."""
        assert isinstance(login.call, Write)
        check_too_late(login.call.event, self._state.time.now)
        login.may_be_unavailable = "its record came too late"

    def end(self, login: Login) -> None:
        assert login.ended is not None
        state, outcome = self._state, login.ended.outcome
        # A node knows the database's time but for the time that a reading took.
        if state.time.now - login.arrived_at + abs(login.clock_off) > MAX_CLOCK_ERROR:
            login.may_be_unavailable = "its node's clock could be off by more than 2 s"
        try:
            check_answer(login, state.history)
            if outcome == ISSUED:
                check_key(login, state.decided)
                state.tokens.add(login)
        except ClaimBroken as broken:
            raise ClaimBroken(f"{broken}\n{login}") from None
        if outcome == ProtocolReason.RATE_LIMITED and login.denied is not None:
            until, address = login.denied
            self._denied[login.node, _caller(login, address)] = until
        state.outcomes[outcome] += 1
        state.note(login.number, login.node, outcome)

    def forget(self, node: int) -> None:
        """A new process remembers no client."""
        self._denied = {key: until for key, until in self._denied.items() if key[0] != node}

    def _read(self, login: Login) -> None:
        """A 429 is right from now on if the window is full now."""
        state = self._state
        login.read_in = state.step
        facts = state.history.present.facts(login.query)
        limit = facts.client.logins_per_minute if facts else 0
        until = facts and state.limits.retry_at(facts.client.id, limit, state.time.now)
        login.denied = (until, "") if until else None
        login.may_be_limited = "its window is full" if until else ""

    def _is_stored(self, login: Login, call: Write, result: Any) -> bool:
        limits, now = self._state.limits, self._state.time.now
        login.denied, login.may_be_limited = None, ""
        if isinstance(call, CountedLogin):
            if result is None:
                self._check_repeated(login, call)
            if not isinstance(result, Quota):
                return False
            limits.count(call, self._limit(call.system_user_id), result, now)
        else:
            if isinstance(call, FailedLogin):
                limits.fail(call, result, now)
            else:
                limits.reject(call, result, now)
            if result is not None:
                login.denied = (result.retry_at, login.asked.address)
                login.may_be_limited = "it has to wait after failures"
                return False
        return True

    def _check_repeated(self, login: Login, call: CountedLogin) -> None:
        """A lock is no reason to decide again: so a login is repeated a few times at most."""
        state, limit = self._state, self._limit(call.system_user_id)
        # Others of this client, whose results are not known here yet, may have filled its window.
        nearly = limit and max(limit - _UNDER_WAY, 1)
        if (
            login.read_in is not None
            and login.read_in > max(state.history.changed_in, state.renewed_in)
            and call.new_index is None
            and is_recent(call.event, state.time.now)
            and not state.limits.retry_at(call.system_user_id, nearly, state.time.now)
        ):
            raise ClaimBroken("a login is decided again only where something has changed")

    def _limit(self, client: int) -> int:
        rows = self._state.history.present.system_users
        return next((row.logins_per_minute for row in rows if row.id == client), -1)


def _caller(login: Login, address: str) -> Hashable:
    """Who is denied there: one that asks what can be read, or an address that does not."""
    if not login.asked.is_readable:
        return address
    return login.query.client_id, login.query.lookup, address
