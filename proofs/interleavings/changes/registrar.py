"""Makes changes of all kinds, in two sessions, and knows what is in force after each commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import accumulate

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from proofs.interleavings.changes.by_service import BY_SERVICE
from proofs.interleavings.changes.by_sql import BY_SQL
from proofs.interleavings.changes.change import Change, Context, NothingToChange
from proofs.interleavings.changes.wholesale import TAKE_COPY, WHOLESALE, restore_backup
from proofs.interleavings.oracle.claims import adopt_counters, check_connections, check_registry
from proofs.interleavings.oracle.registry import read_registry
from proofs.interleavings.simulated_time import LOCK_TIMEOUT
from proofs.interleavings.state import RunState
from taxpayers.services import ServiceError

KINDS = (*BY_SERVICE, *BY_SQL, *WHOLESALE)
_MOST_OPEN = 3  # changes in one transaction
_BEGINNING = timedelta(days=30)  # before the run: the first moment of a change by a service


@contextmanager
def in_use(other: BaseDatabaseWrapper) -> Iterator[None]:
    """Django's present connection is this one."""
    before = connections["default"]
    connections["default"] = other
    try:
        yield
    finally:
        connections["default"] = before


class ChangingSession:
    """Changes that are not committed yet, on a separate connection."""

    def __init__(self) -> None:
        self._connection: BaseDatabaseWrapper = connection.copy()
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout TO '{LOCK_TIMEOUT}'")
        self.open: list[Change] = []

    def make(self, change: Change, context: Context) -> bool:
        """Whether something was changed. A change that meets a lock ends the transaction."""
        if not self.open:
            self._connection.set_autocommit(False)
        try:
            with in_use(self._connection):
                change.make(context)
        except (NothingToChange, ObjectDoesNotExist, ServiceError):  # or gone since the last commit
            if not self.open:
                self.roll_back()
            return False
        except DatabaseError:
            self.roll_back()
            return False
        self.open.append(change)
        return True

    def commit(self) -> list[Change]:
        """What is now in force; nothing if the database refused it."""
        made = self.open
        try:
            self._connection.commit()
        except DatabaseError:
            made = []
        self.roll_back()
        return made

    def roll_back(self) -> None:
        self.open = []
        self._connection.rollback()
        self._connection.set_autocommit(True)

    def execute(self, sql: str) -> None:
        """On its own, while nothing is open."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def close(self) -> None:
        if self.open:
            self.roll_back()
        self._connection.close()


class Registrar:
    """Two sessions, so that changes that are not committed meet each other."""

    def __init__(self, state: RunState) -> None:
        self._weights = list(accumulate(kind.weight for kind in KINDS))
        self._state = state
        self._sessions = (ChangingSession(), ChangingSession())
        self._made = 0

    def change(self) -> bool:
        """Makes one change; it is committed at once, or its transaction stays open."""
        rng = self._state.rng
        session = rng.choice(self._sessions)
        kind: Change = rng.choices(KINDS, cum_weights=self._weights)[0]
        if session.open and not kind.is_held:
            return False
        if session.make(kind, self._context()):
            stays_open = kind.is_held and rng.random() < 0.4 and len(session.open) < _MOST_OPEN
            if not stays_open:
                self._end(session)
        return True

    def end(self) -> bool:
        """Commits an open transaction, or rolls it back."""
        sessions = [session for session in self._sessions if session.open]
        if sessions:
            self._end(self._state.rng.choice(sessions))
        return bool(sessions)

    def take_copy(self) -> bool:
        session = self._sessions[0]
        if session.open:
            return False
        session.execute(TAKE_COPY)
        return True

    @property
    def is_idle(self) -> bool:
        return not any(session.open for session in self._sessions)

    def close(self) -> None:
        for session in self._sessions:
            session.close()

    def _context(self) -> Context:
        state = self._state
        self._made += 1
        at = state.time.started - _BEGINNING + timedelta(seconds=self._made)
        known = (state.history.present, state.credentials, state.latest, state.connections)
        return Context(state.rng, *known, state.time.now, at)

    def _end(self, session: ChangingSession) -> None:
        state = self._state
        if state.rng.random() < 0.1:
            session.roll_back()
            return
        if all(kind.is_held for kind in session.open):  # others have locked whole tables
            check_registry(state.history.present)
        made = session.commit()
        if not made:
            return
        state.history.add(state.step, read_registry())
        check_connections(state.decided, state.history.present)
        if any(kind.name == restore_backup.__name__ for kind in made):
            state.tokens.forget(state.step)
        if any(kind.is_counter_changed for kind in made):
            adopt_counters(state.limits, state.history.present)
        names = [kind.name for kind in made]
        state.note(names)
        state.changes.update(names)
        state.latest_changes.append(f"step {state.step}: {', '.join(names)}")
