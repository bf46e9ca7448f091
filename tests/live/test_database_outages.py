"""A database that hangs, crashes or restarts, and a service that is killed: nothing is lost.

The real service on its own PostgreSQL, whose commits survive its end.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import jwt
import psycopg
import pytest

from tests.conftest import StartService
from tests.live.clients import new_client
from tests.servers.postgres import Postgres, start_postgres
from tests.servers.processes import children, stopping
from tests.servers.service import Service, manage, service_environment
from tests.support.erp import PATH, Erp

pytestmark = pytest.mark.processes

SENDERS = 12
LIMIT_SECONDS = 2.0
ROOM = 1.0  # for a machine that is busy with other tests
CLIENTS = 6


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    server = start_postgres(synchronous_commit="on")
    with stopping(server):
        yield server


@pytest.fixture(scope="module")
def node(
    own_postgres: Postgres, services: StartService, tmp_path_factory: pytest.TempPathFactory
) -> Service:
    """One for all tests: each leaves it with its database, and able to log clients in."""
    url = own_postgres.create_database()
    folder = tmp_path_factory.mktemp("migrate")
    manage(service_environment(folder, 0, DATABASE_URL=url), "migrate", "-v0")
    return services(url, WEB_PROCESSES="2")


@pytest.fixture(scope="module")
def erps(node: Service) -> list[Erp]:
    return [new_client(node, "--logins-per-minute", "0") for _ in range(CLIENTS)]


@dataclass
class Load:
    """What clients saw that log in without a pause; `tokens` are the ids of what they received."""

    tokens: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    slowest: float = 0.0
    events_before: int = 0
    _ends: threading.Event = field(default_factory=threading.Event)

    def send(self, node: Service, erps: list[Erp], number: int) -> None:
        with httpx.Client(timeout=10) as client:
            while not self._ends.is_set():
                number += 1
                started = time.monotonic()
                try:
                    answer = client.post(f"{node.url}{PATH}", data=erps[number % len(erps)].form)
                except httpx.TransportError:
                    self.broken += 1
                    time.sleep(0.02)
                    continue
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.statuses[answer.status_code] += 1
                if answer.status_code == 200:
                    token = answer.json()["access_token"]
                    claims = jwt.decode(token, options={"verify_signature": False})
                    self.tokens.append(claims["jti"])
                elif answer.status_code == 503:
                    assert answer.json()["error"] == "temporarily_unavailable"
                    assert int(answer.headers["Retry-After"]) > 0

    def works_again(self, more: int = 2 * SENDERS) -> None:
        """Waits until as many logins more were answered: it recovers by itself."""
        wanted, deadline = self.statuses[200] + more, time.monotonic() + 20
        while self.statuses[200] < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self) -> None:
        self._ends.set()


@contextmanager
def steady_load(node: Service, erps: list[Erp]) -> Iterator[Load]:
    load = Load(events_before=len(issued(node)))
    with ThreadPoolExecutor(SENDERS) as senders:
        running = [senders.submit(load.send, node, erps, number) for number in range(SENDERS)]
        try:
            load.works_again()
            yield load
            load.works_again()
        finally:
            load.end()
            for sender in running:
                sender.result()


def rows(node: Service, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(node.environment["DATABASE_URL"]) as connection:
        return connection.execute(statement.encode()).fetchall()


def issued(node: Service) -> list[str]:
    """The ids of the tokens for which there is an event."""
    return [str(row[0]) for row in rows(node, "SELECT id FROM login_events WHERE reason = ''")]


def assert_nothing_lost(load: Load, node: Service) -> None:
    assert len(set(load.tokens)) == len(load.tokens) > 0
    assert set(load.tokens) <= set(issued(node))
    counted = "SELECT (SELECT sum(used) FROM client_usage), (SELECT count(*) FROM login_events)"
    ((logins, events),) = rows(node, counted)
    assert logins == events, "none is counted twice"


def test_a_database_that_hangs_is_a_503_within_two_seconds_and_issues_nothing_afterwards(
    own_postgres: Postgres, node: Service, erps: list[Erp]
) -> None:
    """Logins, the status lists and readiness, at the same time."""
    lists: list[tuple[float, float, int]] = []  # when it was asked, for how long, and its `iat`
    is_over = threading.Event()

    def ask_for_lists(hung_at: float) -> None:
        while not is_over.is_set():
            began = time.monotonic() - hung_at
            answer = httpx.get(f"{node.url}/status/0", timeout=10)
            claims = jwt.decode(answer.text, options={"verify_signature": False})
            lists.append((began, time.monotonic() - hung_at - began, claims["iat"]))
            time.sleep(0.05)

    with steady_load(node, erps) as load, ThreadPoolExecutor(2) as threads:
        own_postgres.hang()
        hung_at_date = time.time()
        try:
            load.slowest = 0.0
            asking = [threads.submit(ask_for_lists, time.monotonic()) for _ in range(2)]
            time.sleep(3.5 + ROOM)
            began = time.monotonic()
            assert httpx.get(f"{node.url}/health/live", timeout=1).status_code == 200
            assert httpx.get(f"{node.url}/health/ready", timeout=4).status_code == 503
            assert time.monotonic() - began < LIMIT_SECONDS + ROOM
            is_over.set()
            for one in asking:
                one.result()
        finally:
            is_over.set()
            own_postgres.go_on()
        assert load.statuses[503] >= SENDERS
        assert load.slowest < LIMIT_SECONDS + ROOM
    assert set(load.statuses) == {200, 503}
    assert_nothing_lost(load, node)
    # Of those that were under way when it hung, some may be stored: at most a batch a process.
    assert len(issued(node)) - load.events_before - len(load.tokens) <= 2 * SENDERS
    assert max(took for _, took, _ in lists) < LIMIT_SECONDS + ROOM
    late = {issued_at for began, _, issued_at in lists if began > ROOM + 1}
    assert len(late) <= 2, "each process publishes its last list, with its old date"
    assert max(late) <= hung_at_date + 1
    for path in ("/status/0", "/health/ready", "/health"):
        until_all_are_200(node, path)


def until_all_are_200(node: Service, path: str) -> None:
    """In both processes."""
    deadline = time.monotonic() + 15
    while {httpx.get(f"{node.url}{path}").status_code for _ in range(6)} != {200}:
        assert time.monotonic() < deadline, path
        time.sleep(0.1)


def crash(own_postgres: Postgres, node: Service) -> None:
    own_postgres.crash_and_restart()


def end_sessions(own_postgres: Postgres, node: Service) -> None:
    for _ in range(5):
        rows(
            node,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        time.sleep(0.1)


def kill_processes(own_postgres: Postgres, node: Service) -> None:
    for worker in children(node.pid):
        os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize(
    ("happen", "statuses", "may_break"),
    [(crash, {200, 503}, False), (end_sessions, {200}, False), (kill_processes, {200, 503}, True)],
    ids=["the database is killed", "its sessions are ended", "the processes are killed"],
)
def test_what_is_killed_costs_no_recorded_login_and_none_is_counted_twice(
    own_postgres: Postgres,
    node: Service,
    erps: list[Erp],
    happen: Callable[[Postgres, Service], None],
    statuses: set[int],
    may_break: bool,
) -> None:
    with steady_load(node, erps) as load:
        happen(own_postgres, node)
    assert set(load.statuses) <= statuses
    assert may_break or not load.broken
    assert_nothing_lost(load, node)
    if statuses == {200}:
        assert len(load.tokens) == len(issued(node)) - load.events_before
