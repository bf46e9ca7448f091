"""A node of a run: what it knows, its sessions of the database, and the logins that wait there."""

import shutil
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import OperationalError

from proofs.interleavings.logins.login import Login
from proofs.interleavings.simulated_time import LOCK_TIMEOUT, SEARCH_PATH, SHOW_TIME, SimulatedTime
from taxpayers.facts.local import SharedFacts
from taxpayers.facts.values import FactsQuery
from taxpayers.sql import Row
from tokens.calls import (
    Call,
    CallOfClient,
    CountedLogin,
    FailedLogin,
    RejectedRequest,
    TakeStatusIndex,
    TokenRevocation,
)
from tokens.operations.node import Node
from tokens.operations.steps import LockedRead
from tokens.store.django_store import LOCK_CLIENT
from tokens.store.postgresql import statement_for

KINDS = (
    *(FactsQuery, CountedLogin, FailedLogin, RejectedRequest),
    *(TakeStatusIndex, TokenRevocation),
)
_MAP_BYTES = 2**20


class Session:
    """A session of the database that executes the statements of the login, as they are."""

    def __init__(self, url: str, time: SimulatedTime) -> None:
        self._time = time
        self._shown: object = None
        self._connection = psycopg.connect(
            url, autocommit=True, options=f"-c lock_timeout={LOCK_TIMEOUT} -c timezone=UTC"
        )
        self._connection.execute(f"SET search_path TO {SEARCH_PATH}".encode())
        self._cursor = self._connection.cursor()

    def fetch(self, sql: str, parameters: Any = ()) -> list[Row]:
        if self._shown != self._time.now:
            self._cursor.execute(SHOW_TIME.encode(), (self._time.now.isoformat(),), prepare=True)
            self._shown = self._time.now
        self._cursor.execute(sql.encode(), parameters, prepare=True, binary=True)
        return self._cursor.fetchall()

    def execute(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def rollback(self) -> None:
        self.execute("ROLLBACK")
        self._shown = None  # it may have been shown in the transaction

    def close(self) -> None:
        self._connection.close()


class SimulatedNode:
    """One of several nodes; `off` is how far its clock is from the database's."""

    def __init__(
        self, number: int, url: str, folder: Path, off: timedelta, time: SimulatedTime
    ) -> None:
        self.number = number
        self.off = off
        self.folder = folder / f"node-{number}"
        self._copy = folder / f"copy-{number}"
        self.session = Session(url, time)
        self.locked_session = Session(url, time)
        self.start()

    def start(self) -> None:
        """A new process: it knows nothing but what the node has stored."""
        key = settings.SECRET_KEY.encode()
        self._facts = SharedFacts(self.folder, max_bytes=_MAP_BYTES, key=key)
        self.knowledge = Node(self._facts)
        # Logins that wait, by the kind of the call that they wait for.
        self.lanes: dict[type, deque[Login]] = {kind: deque() for kind in KINDS}
        # Those whose client another session had locked, by its id, too.
        self.locked_clients: dict[tuple[int, type], deque[Login]] = {}
        self.undelivered: list[tuple[Login, Any]] = []
        self.wants_lock: list[tuple[Login, LockedRead]] = []
        self.locked: Login | None = None  # that has locked its client

    def add(self, login: Login) -> None:
        """Its call waits, behind others of its client that wait for its lock."""
        call = login.call
        kind = type(call)
        client = call.system_user_id if isinstance(call, CallOfClient) else 0
        self.locked_clients.get((client, kind), self.lanes[kind]).append(login)

    def wait_for_client(self, login: Login) -> None:
        """Another session had its client locked."""
        call = login.call
        assert isinstance(call, CallOfClient)
        self.locked_clients.setdefault((call.system_user_id, type(call)), deque()).append(login)

    def execute(self, calls: Sequence[Call], *, waits: bool = False) -> list[Any]:
        """The results of these calls, in one statement."""
        return self._results(self.session, calls, waits=waits)

    def lock(self, query: FactsQuery) -> Any:
        """The reading of a client that no session changes until `finish_lock`.

        Raises OperationalError if another session is changing it.
        """
        self.locked_session.execute("BEGIN")
        try:
            self.locked_session.fetch(LOCK_CLIENT, (query.client_id,))
            return self._results(self.locked_session, [query])[0]
        except psycopg.errors.LockNotAvailable as error:
            self.locked_session.rollback()
            raise OperationalError(str(error)) from error

    def finish_lock(self, call: Call | None = None) -> Any:
        """Executes the call and commits."""
        self.locked = None
        try:
            result = self._results(self.locked_session, [call])[0] if call else None
        except psycopg.Error:
            self.locked_session.rollback()
            raise
        self.locked_session.execute("COMMIT")
        return result

    def stop(self) -> list[Login]:
        """Ends the process; returns the logins that get no answer."""
        lanes = (*self.lanes.values(), *self.locked_clients.values())
        lost = [login for lane in lanes for login in lane]
        lost += [login for login, _ in (*self.undelivered, *self.wants_lock)]
        if self.locked is not None:
            lost.append(self.locked)
            self.locked_session.rollback()
        for login in lost:
            login.steps.close()
        if self._facts._opened:
            self._facts._opened[1].close()  # as the end of a process does
        return lost

    def close(self) -> None:
        self.session.close()
        self.locked_session.close()

    def copy_facts(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self._copy, ignore_errors=True)
            shutil.copytree(self.folder, self._copy)

    def delete_facts(self) -> None:
        """Under the running process."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def put_copy_back(self) -> None:
        """The older copy replaces the local facts; who runs still has the others open."""
        if self._copy.exists():
            self.delete_facts()
            shutil.copytree(self._copy, self.folder)

    def _results(
        self, session: Session, calls: Sequence[Call], *, waits: bool = False
    ) -> list[Any]:
        statement = statement_for(calls, waits=waits)
        return statement.parse(session.fetch(statement.sql, statement.parameters))
