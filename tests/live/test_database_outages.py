"""A database that hangs, crashes or restarts, and a service that is killed: nothing is lost.

The real service on its own PostgreSQL, whose commits survive its end.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import jwt
import psycopg
import pytest

from tests.conftest import StartService
from tests.live.test_live_service import new_client
from tests.servers.postgres import Postgres, start_postgres
from tests.servers.processes import children_of, stopping
from tests.servers.service import Service, manage, service_environment
from tests.support.erp import PATH, Erp

SENDERS = 12
LIMIT_SECONDS = 2.0
PUBLISHED_SECONDS = 2.0  # so old may a status list be that a node publishes
ROOM = 0.5  # for a machine that is busy with other tests
CLIENTS = 6


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    server = start_postgres(synchronous_commit="on")
    with stopping(server):
        yield server


@pytest.fixture
def database(own_postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    url = own_postgres.create_database()
    folder = tmp_path_factory.mktemp("migrate")
    manage(service_environment(folder, 0, DATABASE_URL=url), "migrate", "-v0")
    yield url
    own_postgres.drop_database(url)


@dataclass
class Load:
    """What clients saw that log in without a pause; `tokens` are the ids of what they received."""

    tokens: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    slowest: float = 0.0
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

    def end(self) -> None:
        self._ends.set()


@contextmanager
def steady_load(node: Service, erps: list[Erp]) -> Iterator[Load]:
    load = Load()
    with ThreadPoolExecutor(SENDERS) as senders:
        running = [senders.submit(load.send, node, erps, number) for number in range(SENDERS)]
        try:
            time.sleep(0.7)
            yield load
        finally:
            load.end()
            for sender in running:
                sender.result()


def clients_of(node: Service) -> list[Erp]:
    first = new_client(node, "--logins-per-minute", "0")
    others = [
        node.manage(
            "issue_credentials", "C1000000001", "--name", f"{n}", "--logins-per-minute", "0"
        )
        for n in range(CLIENTS - 1)
    ]
    return [first, *(Erp(other["client_id"], other["client_secret"]) for other in others)]


def issued(url: str) -> list[str]:
    """The ids of the tokens for which there is an event."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT id FROM login_events WHERE reason = ''").fetchall()
    return [str(row[0]) for row in rows]


def counted(url: str) -> tuple[int, int]:
    """How many logins the counters have, and how many events there are of them."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT (SELECT sum(used) FROM client_usage), (SELECT count(*) FROM login_events)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def assert_nothing_lost(load: Load, url: str) -> None:
    recorded = issued(url)
    assert load.tokens
    assert len(set(load.tokens)) == len(load.tokens)
    assert set(load.tokens) <= set(recorded)
    logins, events = counted(url)
    assert logins == events


def test_a_database_that_hangs_is_a_503_within_two_seconds_and_issues_nothing_afterwards(
    own_postgres: Postgres, database: str, service: StartService
) -> None:
    node = service(database)
    erps = clients_of(node)
    with steady_load(node, erps) as load:
        own_postgres.hang()
        try:
            load.slowest = 0.0
            time.sleep(4)
            began = time.monotonic()
            assert httpx.get(f"{node.url}/health/live", timeout=1).status_code == 200
            assert httpx.get(f"{node.url}/health/ready", timeout=4).status_code == 503
            assert time.monotonic() - began < LIMIT_SECONDS + ROOM
        finally:
            own_postgres.go_on()
        time.sleep(3)
        assert load.statuses[503] > SENDERS
        assert load.slowest < LIMIT_SECONDS + ROOM
        before = load.statuses[200]
        time.sleep(1)
        assert load.statuses[200] > before  # it works again by itself
    assert set(load.statuses) == {200, 503}
    assert_nothing_lost(load, database)
    # Of those that were under way when it hung, some may be stored: at most a batch a process.
    assert len(issued(database)) - len(load.tokens) <= 2 * SENDERS


def test_status_lists_of_a_database_that_hangs_are_a_503_within_two_seconds_on_every_node(
    own_postgres: Postgres, database: str, service: StartService
) -> None:
    nodes = [service(database), service(database)]
    last_good = PUBLISHED_SECONDS + ROOM  # since the database hung

    def ask(number: int) -> list[tuple[float, float, int]]:
        """Without a pause: when it was asked, for how long it was waited, and the status."""
        seen = []
        with httpx.Client(base_url=nodes[number % 2].url, timeout=10) as client:
            while (began := time.monotonic() - hung_at) < last_good + 2:
                answer = client.get("/status/0")
                assert answer.status_code == 200 or int(answer.headers["Retry-After"]) > 0
                seen.append((began, time.monotonic() - hung_at - began, answer.status_code))
                time.sleep(0.05)
        return seen

    own_postgres.hang()
    hung_at = time.monotonic()
    try:
        with ThreadPoolExecutor(4) as threads:
            answers = [answer for seen in threads.map(ask, range(4)) for answer in seen]
        for node in nodes:
            assert httpx.get(f"{node.url}/health/live", timeout=1).status_code == 200
    finally:
        own_postgres.go_on()
    assert {status for _, _, status in answers} <= {200, 503}
    assert max(took for _, took, _ in answers) < LIMIT_SECONDS + ROOM
    assert {status for began, _, status in answers if began > last_good} == {503}
    deadline = time.monotonic() + 15
    while {httpx.get(f"{node.url}/status/0").status_code for node in nodes} != {200}:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_killed_database_costs_no_recorded_login_and_none_is_counted_twice(
    own_postgres: Postgres, database: str, service: StartService
) -> None:
    node = service(database)
    erps = clients_of(node)
    with steady_load(node, erps) as load:
        own_postgres.crash_and_restart()
        time.sleep(2)
        before = load.statuses[200]
        time.sleep(1)
        assert load.statuses[200] > before
    assert set(load.statuses) <= {200, 503}
    assert not load.broken
    assert_nothing_lost(load, database)


def test_sessions_that_are_ended_under_load_cost_no_answer(
    database: str, service: StartService
) -> None:
    node = service(database)
    erps = clients_of(node)
    with steady_load(node, erps) as load, psycopg.connect(database, autocommit=True) as connection:
        for _ in range(5):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            time.sleep(0.2)
    assert set(load.statuses) == {200}
    assert_nothing_lost(load, database)
    assert sorted(load.tokens) == sorted(issued(database))


def test_a_killed_service_has_recorded_every_token_that_a_client_received(
    database: str, service: StartService
) -> None:
    node = service(database)
    erps = clients_of(node)
    with steady_load(node, erps) as load:
        for worker in children_of(node.pid):
            os.kill(worker, signal.SIGKILL)
        time.sleep(2)
        before = load.statuses[200]
        time.sleep(1)
        assert load.statuses[200] > before
    assert set(load.statuses) <= {200, 503}
    assert_nothing_lost(load, database)
